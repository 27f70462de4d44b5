#include "record/interpreter/layout.h"

#include <algorithm>
#include <array>

namespace culprit::record::interpreter {

namespace {

constexpr std::uint32_t kNone = CULPRIT_NO_CFRAME;

constexpr culprit_python frames(std::uint32_t ident, std::uint32_t frame, std::uint32_t cframe, std::uint32_t back,
                                std::uint32_t code, std::uint32_t entry) {
  culprit_python made{};
  made.thread_next = 8;
  made.thread_ident = ident;
  made.thread_frame = frame;
  made.cframe_frame = cframe;
  made.frame_back = back;
  made.frame_code = code;
  made.frame_entry = entry;
  return made;
}

constexpr std::array<Layout, 5> kLayouts = {{
    {"3.9", 40, 8, frames(176, 24, kNone, 24, 32, 0), Entries::each, 40, 104, 112, 48, 72},
    {"3.10", 40, 8, frames(176, 24, kNone, 24, 32, 0), Entries::each, 40, 104, 112, 48, 72},
    {"3.11", 48, 16, frames(152, 56, 8, 48, 32, 68), Entries::flag, 72, 112, 128, 48, 72},
    {"3.12", 48, 72, frames(136, 56, 0, 8, 0, 70), Entries::shim, 68, 112, 128, 40, 56},
    {"3.13", 640, 7344, frames(152, 72, kNone, 8, 0, 70), Entries::shim, 68, 112, 128, 40, 56},
}};

}  // namespace

const Layout* layout_of(std::string_view version) {
  const auto* found = std::ranges::find(kLayouts, version, &Layout::version);
  return found == kLayouts.end() ? nullptr : found;
}

std::optional<std::string> version_in(std::string_view file) {
  file.remove_prefix(file.rfind('/') + 1);
  const bool library = file.starts_with("libpython");
  if (!library && !file.starts_with("python")) return std::nullopt;
  file.remove_prefix(library ? 9 : 6);
  if (library) file = file.substr(0, file.find(".so"));
  const bool number = file.starts_with("3.") && file.size() > 2 &&
                      std::ranges::all_of(file.substr(2), [](char c) { return c >= '0' && c <= '9'; });
  return number ? std::optional(std::string(file)) : std::nullopt;
}

}  // namespace culprit::record::interpreter
