// What reading a table met: rows and cells that could not be used are counted, the first ones described.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace culprit::model {

/// One place in the input that could not be used.
struct InputDamage {
  std::uint64_t line = 0;  ///< 1-based
  std::string what;
  std::string remedy;
};

/// What reading a file met.
struct InputReport {
  std::string file;
  std::uint64_t rows = 0;                    ///< rows kept
  std::uint64_t bad_rows = 0;                ///< rows that could not be used at all
  std::uint64_t bad_cells = 0;               ///< cells of kept rows that are no number and count as missing
  std::vector<InputDamage> first;            ///< the first of them, in file order
  std::vector<std::string> unknown_columns;  ///< columns that were not read
};

}  // namespace culprit::model
