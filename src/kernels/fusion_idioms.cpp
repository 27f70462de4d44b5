#include "kernels/fusion_idioms.h"

#include <algorithm>
#include <vector>

#include "core/text.h"
#include "profile/function_kind.h"

namespace culprit::kernels {

namespace {

constexpr std::size_t kNameLooked = 8192;
/// pow, mul, add, mul, tanh, add, mul, mul: the GELU by tanh has seven to nine element-wise operations.
constexpr std::size_t kGeluLeast = 7;
constexpr std::size_t kGeluMost = 9;

bool any_contains(std::span<const std::string_view> names, std::string_view part) {
  return std::ranges::any_of(
      names, [part](std::string_view name) { return contains_ignoring_case(name.substr(0, kNameLooked), part); });
}

std::string joined(const std::vector<std::string_view>& parts) {
  std::string text;
  for (const std::string_view part : parts) text.append(text.empty() ? "" : " + ").append(part);
  return text;
}

}  // namespace

FusionRole fusion_role(std::string_view kernel_name) {
  const std::string_view name = kernel_name.substr(0, kNameLooked);
  if (contains_ignoring_case(name, "nchwtonhwc") || contains_ignoring_case(name, "nhwctonchw"))
    return FusionRole::layout;
  if (contains_ignoring_case(name, "dropout")) return FusionRole::dropout;
  if (contains_ignoring_case(name, "amp_update_scale")) return FusionRole::none;
  switch (family_of(name)) {
    case KernelFamily::elementwise:
      // The unrolled variant serves what cannot be vectorised: in practice conversions of type.
      if (contains_ignoring_case(name, "unrolled_elementwise") || contains_ignoring_case(name, "loadwithcast"))
        return FusionRole::cast;
      return FusionRole::elementwise;
    case KernelFamily::rope:
    case KernelFamily::quantize:
      return FusionRole::elementwise;
    case KernelFamily::copy:
      return contains_ignoring_case(name, "unrolled_elementwise") ? FusionRole::cast : FusionRole::copy;
    case KernelFamily::embedding:
      return FusionRole::gather;
    case KernelFamily::reduce:
      return contains_ignoring_case(name, "splitk") ? FusionRole::none : FusionRole::reduce;
    case KernelFamily::norm:
      return FusionRole::norm;
    case KernelFamily::softmax:
      return FusionRole::softmax;
    case KernelFamily::optimizer:
      return FusionRole::optimizer;
    default:
      return FusionRole::none;
  }
}

Idiom idiom_of(std::span<const std::string_view> names, std::span<const FusionRole> roles, bool between_products) {
  const auto count = [&](FusionRole role) { return static_cast<std::size_t>(std::ranges::count(roles, role)); };
  const std::size_t elementwise = count(FusionRole::elementwise);
  const std::size_t copies = count(FusionRole::copy);
  if (count(FusionRole::layout) > 0) return {"layout changes around convolutions (NCHW, NHWC)", false};
  if (count(FusionRole::optimizer) > 0) return {"optimizer foreach chain", false};
  if (count(FusionRole::cast) == roles.size()) return {"casts", true};

  std::vector<std::string_view> parts;
  bool by_shape = false;
  const bool loss = any_contains(names, "nll_loss") || any_contains(names, "cross_entropy");
  if (loss) parts.emplace_back("loss with its softmax");
  if (count(FusionRole::softmax) > 0 && !loss) parts.emplace_back("softmax chain");
  if (count(FusionRole::norm) > 0) parts.emplace_back("normalisation with element-wise neighbours");
  if (any_contains(names, "gelu"))
    parts.emplace_back("GELU");
  else if (any_contains(names, "tanh") && (any_contains(names, "pow") || elementwise >= kGeluLeast))
    parts.emplace_back("GELU (pow, mul, add, tanh)");
  else if (any_contains(names, "silu") || any_contains(names, "sigmoid"))
    parts.emplace_back("gated activation");
  const bool bare = std::ranges::none_of(names, [](std::string_view name) { return name.find('<') != name.npos; });
  if (bare && between_products && elementwise == roles.size() && elementwise >= kGeluLeast &&
      elementwise <= kGeluMost) {
    parts.emplace_back("GELU (pow, mul, add, tanh)");
    by_shape = true;
  }
  if (count(FusionRole::reduce) >= 2 && elementwise >= 2 && !loss) {
    parts.emplace_back("layer norm (reduce + element-wise)");
    by_shape = true;
  } else if (count(FusionRole::reduce) == 1 && elementwise >= 1 && !loss) {
    parts.emplace_back("reduce + element-wise");
  }
  if (copies >= 2 && elementwise >= 3) {
    parts.emplace_back("rotary embedding (slices, concatenations)");
    by_shape = true;
  }
  if (count(FusionRole::dropout) > 0 && !parts.empty()) parts.emplace_back("dropout");
  if (parts.empty()) return {"element-wise chain", false};
  return {joined(parts), by_shape};
}

}  // namespace culprit::kernels
