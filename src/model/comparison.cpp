#include "model/comparison.h"

#include <algorithm>
#include <array>

namespace culprit::model {

bool is_input(std::string_view function) {
  constexpr std::array<std::string_view, 7> kWords = {"DataLoader", "dataloader",     "data_loader", "_next_data",
                                                      "load_batch", "input_pipeline", "fetch_data"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return function.find(word) != function.npos; });
}

bool is_collector(std::string_view function) {
  return function.starts_with("gc generation") || function.find("function collect>") != function.npos ||
         function.find("gc.collect") != function.npos;
}

}  // namespace culprit::model
