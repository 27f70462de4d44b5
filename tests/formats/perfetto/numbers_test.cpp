// The numbers of trace.proto are those of the format: a file that is written and read with one wrong number would pass
// every other test. published_numbers.txt was generated from the descriptor that Perfetto publishes (version 0.59).
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "support.h"

namespace culprit::perfetto::test {
namespace {

using Numbers = std::map<std::string, int>;

/// Every field and every enumerator of a .proto, "Message.Inner.name" to its number.
Numbers numbers_of_proto(const std::string& path) {
  Numbers numbers;
  std::vector<std::string> scopes;  // "" for a oneof, which is no part of a name
  std::ifstream in(path);
  const std::regex begins(R"(^\s*(message|enum|oneof)\s+(\w+)\s*\{)");
  const std::regex field(R"((\w+)\s*=\s*(\d+)\s*(\[[^\]]*\])?;)");
  for (std::string line; std::getline(in, line);) {
    line = line.substr(0, line.find("//"));
    std::smatch match;
    if (std::regex_search(line, match, begins)) {
      scopes.push_back(match[1] == "oneof" ? "" : match[2].str() + ".");
    } else if (line.find('}') != std::string::npos) {
      scopes.pop_back();
    } else if (!scopes.empty() && std::regex_search(line, match, field)) {
      std::string name;
      for (const std::string& scope : scopes) name += scope;
      numbers[name + match[1].str()] = std::stoi(match[2]);
    }
  }
  return numbers;
}

TEST(PerfettoNumbers, AreThoseOfTheFormat) {
  Numbers published;
  std::ifstream in(std::string(CULPRIT_SOURCE_DIR) + "/tests/formats/perfetto/published_numbers.txt");
  int number = 0;
  for (std::string name; in >> name >> number;) published[name] = number;
  ASSERT_GT(published.size(), 150U);
  EXPECT_THAT(numbers_of_proto(kFolder + "/trace.proto"), testing::UnorderedElementsAreArray(published));
}

}  // namespace
}  // namespace culprit::perfetto::test
