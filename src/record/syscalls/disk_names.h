// What the kernel's numbers of disks and of their operations are called.
#pragma once

#include <cstdint>
#include <string>

namespace culprit::record::syscalls {

/// "vda" of a device number; "253:0" when sysfs does not know it.
std::string device_name(std::uint32_t device);

/// Operations of block requests: the kernel's enum req_op.
std::string operation_name(std::uint32_t operation);

}  // namespace culprit::record::syscalls
