# Writes the file PAGE as a literal into OUTPUT; a literal may be so long only in pieces.
file(READ ${PAGE} hex HEX)
string(LENGTH "${hex}" length)
string(REGEX REPLACE "(................................................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
if(length EQUAL 0)
  set(bytes "0")
endif()
math(EXPR size "${length} / 2")
file(WRITE ${OUTPUT} "#include \"report/page_template.h\"

namespace culprit::report {

namespace {

constexpr unsigned char kPage[] = {
${bytes}
};

}  // namespace

std::string_view page_template() { return {reinterpret_cast<const char*>(kPage), ${size}}; }

}  // namespace culprit::report
")
