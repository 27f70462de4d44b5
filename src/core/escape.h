// Names come from traces, and traces come from anywhere: whatever is shown passes through one of these.
#pragma once

#include <string>
#include <string_view>

namespace culprit {

/// Whether a code point does something to the line it stands in besides being seen: control characters (C0, DEL, C1),
/// bidirectional controls, line and paragraph separators.
bool is_disruptive(char32_t c);

/// For a terminal: control characters (C0, DEL, C1), bidirectional overrides and invalid UTF-8 become visible escapes
/// such as \x1b; everything printable stays.
std::string escape_terminal(std::string_view text);

/// For a Markdown table cell: terminal-safe, with `|`, backquotes, `<`, `>`, `&`, `*`, `_`, `[`, `]` and line breaks
/// neutralised.
std::string escape_markdown(std::string_view text);

/// One CSV field (RFC 4180): quoted when needed; a text that a spreadsheet would run as a formula (first character one
/// of = + - @, tab, return, and not a plain number) gets a leading apostrophe. Control characters other than tab and
/// line breaks, and invalid UTF-8, become visible escapes, because CSV is also read on terminals.
std::string escape_csv(std::string_view text);

/// For HTML text and attribute values.
std::string escape_html(std::string_view text);

}  // namespace culprit
