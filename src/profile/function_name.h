// Names of C++ functions are long; these make them readable without losing what tells them apart. Both take names that
// come from anywhere (mangled, unbalanced, thousands of characters) and run in linear time.
#pragma once

#include <string>
#include <string_view>

namespace culprit {

/// The C++ name behind a mangled one ("_ZN5aiter3fooEv" -> "aiter::foo()"), or `name` itself when it is not mangled,
/// cannot be demangled, or would unfold beyond about a megabyte.
std::string demangle(std::string_view name);

/// The function's name without return type, template arguments, parameters, anonymous and versioned namespaces:
/// "void at::native::vectorized_elementwise_kernel<4, ...>(int, ...)" -> "at::native::vectorized_elementwise_kernel".
/// Wrappers that run something else keep it: "cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm...>". Names that are
/// no C++ signature (Triton kernels, Python functions, "Memcpy HtoD (Host -> Device)") come back unchanged but for the
/// addresses of objects.
std::string short_name(std::string_view name);

/// Python's texts of objects without their addresses: "<built-in method unbind of Tensor object at 0x7fa2c8d0>" ->
/// "<built-in method unbind of Tensor object>".
std::string without_addresses(std::string_view name);

}  // namespace culprit
