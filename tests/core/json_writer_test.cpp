#include "core/json_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace culprit {
namespace {

/// What `write` writes without white space.
template <class Write>
std::string packed(Write&& write) {
  std::string out;
  JsonWriter json(out, JsonForm::packed);
  write(json);
  return out;
}

template <class T>
std::string written(const T& value) {
  return packed([&](JsonWriter& json) { json.value(value); });
}

void sample(JsonWriter& json) {
  json.begin_object();
  json.member("name", "a");
  json.begin_array("rows");
  json.begin_object(JsonForm::line);
  json.member("x", 1);
  json.begin_array("list");
  json.value(true);
  json.null();
  json.end_array();
  json.end_object();
  json.begin_object(JsonForm::line);
  json.end_object();
  json.end_array();
  json.begin_object("none");
  json.end_object();
  json.end_object();
}

TEST(JsonWriter, PackedHasNoWhiteSpace) {
  EXPECT_EQ(packed(sample), R"({"name":"a","rows":[{"x":1,"list":[true,null]},{}],"none":{}})");
}

TEST(JsonWriter, ReadableHasALineForEachMemberUnlessToldOtherwise) {
  std::string out;
  JsonWriter json(out);
  sample(json);
  json.finish();
  EXPECT_EQ(out, R"({
  "name": "a",
  "rows": [
    {"x": 1, "list": [true, null]},
    {}
  ],
  "none": {}
}
)");
}

TEST(JsonWriter, EveryFormIsTheSameDocument) {
  std::string out;
  JsonWriter json(out);
  sample(json);
  EXPECT_EQ(nlohmann::json::parse(out), nlohmann::json::parse(packed(sample)));
}

TEST(JsonWriter, APackedElementStandsOnItsLine) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (int i = 0; i < 2; ++i) {
    json.begin_object(JsonForm::packed);
    json.member("a", i);
    json.member("b", std::vector<int>{1, 2});
    json.end_object();
  }
  json.end_array();
  EXPECT_EQ(out, "[\n  {\"a\":0,\"b\":[1,2]},\n  {\"a\":1,\"b\":[1,2]}\n]");
}

TEST(JsonWriter, NumbersReadBackAsThemselves) {
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(written(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(written(std::int8_t{-3}), "-3");
  EXPECT_EQ(written(0.1), "0.1");
  EXPECT_EQ(written(1.0), "1");
  for (const double value : {1.0 / 3, 1e300, -5e-324, 123456789.125, 1e16, 9007199254740993.0})
    EXPECT_EQ(nlohmann::json::parse(written(value)).get<double>(), value);
}

TEST(JsonWriter, WhatIsNoNumberIsNull) {
  EXPECT_EQ(written(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(written(-std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(written(std::optional<int>()), "null");
  EXPECT_EQ(packed([](JsonWriter& json) { json.fixed(std::numeric_limits<double>::infinity(), 2); }), "null");
}

TEST(JsonWriter, FixedKeepsItsDecimals) {
  EXPECT_EQ(packed([](JsonWriter& json) { json.fixed(0.95, 4); }), "0.9500");
}

TEST(JsonWriter, RangesAreArrays) {
  EXPECT_EQ(written(std::vector<std::string>{"a", "b"}), R"(["a","b"])");
  EXPECT_EQ(written(std::vector<std::optional<double>>{1.5, std::nullopt}), "[1.5,null]");
  EXPECT_EQ(written(std::vector<int>()), "[]");
}

TEST(JsonWriter, KeysAreEscapedToo) {
  EXPECT_EQ(packed([](JsonWriter& json) {
              json.begin_object();
              json.member("a\"b", std::string("c"));
              json.end_object();
            }),
            R"({"a\"b":"c"})");
}

TEST(JsonWriter, TheBufferMayBeEmptiedBetweenValues) {
  std::string out;
  std::string all;
  JsonWriter json(out, JsonForm::packed);
  json.begin_array();
  for (int i = 0; i < 3; ++i) {
    json.value(i);
    all += out;
    out.clear();
  }
  json.end_array();
  EXPECT_EQ(all + out, "[0,1,2]");
}

TEST(JsonWriter, NumbersThatAreTextAlreadyStayAsTheyAre) {
  EXPECT_EQ(packed([](JsonWriter& json) {
              json.begin_array();
              json.raw("12.345");
              json.raw(json_string("x"));
              json.end_array();
            }),
            R"([12.345,"x"])");
}

TEST(JsonString, IsSafeInsideScriptElements) {
  EXPECT_EQ(json_string("</script>&"), R"("\u003c/script\u003e\u0026")");
  EXPECT_EQ(json_string("\xe2\x80\xa8"), R"("\u2028")");
}

TEST(JsonString, KeepsNamesOfTemplatesReadableWhereNoScriptIs) {
  EXPECT_EQ(json_string("f<a&&>\n\"", JsonEscapes::least), R"("f<a&&>\n\"")");
}

TEST(JsonString, ControlCharactersAreEscaped) {
  EXPECT_EQ(json_string("\"\\\n\r\t\x1b\x7f"), R"("\"\\\n\r\t\u001b\u007f")");
  EXPECT_EQ(json_string(std::string_view("\0", 1)), R"("\u0000")");
  EXPECT_EQ(json_string("\xc2\x9b"), R"("\u009b")");
}

TEST(JsonString, InvalidUtf8BecomesTheReplacementCharacter) {
  EXPECT_EQ(json_string("a\xff"
                        "b"),
            "\"a\xef\xbf\xbd"
            "b\"");
  EXPECT_EQ(json_string("é漢🚀"), "\"é漢🚀\"");
}

TEST(JsonString, EveryTextReadsBack) {
  std::string all;
  for (int c = 0; c < 0x80; ++c) all += static_cast<char>(c);
  all += "é漢🚀\u202e";
  EXPECT_EQ(nlohmann::json::parse(json_string(all)).get<std::string>(), all);
}

#ifndef NDEBUG
using JsonWriterDeathTest = testing::Test;

TEST(JsonWriterDeathTest, AValueWithoutAKeyInAnObjectIsABug) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  EXPECT_DEATH(json.value(1), "key_open_");
}

TEST(JsonWriterDeathTest, ClosingWhatIsNotOpenIsABug) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  EXPECT_DEATH(json.end_array(), "levels_");
  EXPECT_DEATH(json.finish(), "levels_");
}
#endif

}  // namespace
}  // namespace culprit
