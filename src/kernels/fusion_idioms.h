// What a run of fusable launches computes, as far as names and company tell.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace culprit::kernels {

/// What a launch can be to a fusion.
enum class FusionRole : std::uint8_t {
  none,         ///< not fusable: matrix products, convolutions, attention, communication, ...
  elementwise,  ///< one output element per input element
  cast,
  dropout,
  copy,  ///< copies, concatenations, fills
  gather,
  reduce,
  norm,     ///< a whole normalisation in one kernel
  softmax,  ///< a whole softmax in one kernel
  layout,   ///< between NCHW and NHWC
  optimizer,
};

FusionRole fusion_role(std::string_view kernel_name);

struct Idiom {
  std::string name;
  bool by_shape = false;  ///< concluded from the order of kernels, not from their names
};

/// `names` and `roles` of one run; `between_products`: matrix products or convolutions stand on both sides.
Idiom idiom_of(std::span<const std::string_view> names, std::span<const FusionRole> roles, bool between_products);

}  // namespace culprit::kernels
