// How much room a text takes on a terminal: tables stay straight with names in any script.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace culprit {

/// Columns that `text` takes on a terminal, by utf8proc's tables of Unicode: none for combining marks and control
/// characters, two for wide characters and emoji; a byte that is no UTF-8 counts as one.
std::size_t display_width(std::string_view text);

/// `text` cut to at most `width` columns; "..." marks a cut. Never cuts inside a character or before the marks that
/// combine with it.
std::string shorten(std::string_view text, std::size_t width);

/// The same by leaving out its middle: kernel names differ at both ends. `text` must be valid UTF-8, as escape_terminal
/// gives it.
std::string shorten_middle(std::string_view text, std::size_t width);

/// The words of `text` in lines of at most `width` columns; a word that is wider has a line of its own. At least one
/// line.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

}  // namespace culprit
