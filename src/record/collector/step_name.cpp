#include "record/collector/step_name.h"

#include <algorithm>
#include <string>

namespace culprit::record {

namespace {

constexpr std::size_t kMostLooked = 256;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

bool is_step_name(std::string_view name) {
  std::string text(name.substr(0, kMostLooked));
  std::ranges::transform(text, text.begin(), lower);
  if (text.find("optimizer.step") != std::string::npos) return false;
  if (text.starts_with("execute_")) return true;
  for (const std::string_view part : {"run_batch", "execute_model", "train_step", "training_step", "profilerstep#"})
    if (text.find(part) != std::string::npos) return true;
  for (const std::string_view word : {"step", "steps", "iteration", "iter"})
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      const std::size_t end = at + word.size();
      if ((at == 0 || !is_lower(text[at - 1])) && (end == text.size() || !is_lower(text[end]))) return true;
    }
  return false;
}

}  // namespace culprit::record
