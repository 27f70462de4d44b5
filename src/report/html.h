// Answers as one page of HTML that asks nothing of the network: the page of web/, with the answer inside as compressed
// JSON. No text of a trace is ever markup: in base64 it cannot be, and the page makes text nodes of it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "model/comparison.h"
#include "model/run_picture.h"
#include "model/table.h"
#include "model/verdict.h"

namespace culprit::report {

struct HtmlPage {
  std::string_view verb;  ///< "diff"
  std::string_view version;
  std::vector<std::string> files;
  std::vector<std::string> heading{};          ///< sentences; two spaces before one: it belongs to what stands above
  std::vector<model::PictureCycles> cycles{};  ///< drawn above the tables
  std::vector<model::Table> tables{};          ///< shown with a comparison, beside its own
  std::vector<model::Verdict> verdicts{};      ///< that the heading tells of, where there is no comparison
  std::vector<model::RunPicture> pictures{};   ///< of the run then, in which these can be seen; one or none
};

/// Error: this program was built without the page.
Status html_is_there();

/// Errors: as html_is_there().
Result<std::string> comparison_html(const HtmlPage& page, const model::RunComparison& comparison,
                                    std::span<const model::RunPicture> pictures);
Result<std::string> tables_html(const HtmlPage& page, std::span<const model::Table> tables);

}  // namespace culprit::report
