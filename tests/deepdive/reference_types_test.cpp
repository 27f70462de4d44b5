#include "deepdive/reference_types.h"

#include <gtest/gtest.h>

#include <string>

namespace culprit::deepdive {
namespace {

using enum ReferenceType;

ReferenceType type(SliceClass c, std::string_view name, std::string_view category = "", std::string_view thread = "") {
  return reference_type(c, category, name, thread);
}

TEST(ReferenceType, TellsKernelsCopiesAndFillsApart) {
  EXPECT_EQ(type(SliceClass::kernel, "ncclDevKernel_AllReduce"), gpu_comm);
  EXPECT_EQ(type(SliceClass::kernel, "my_NCCL_thing"), gpu_comm);
  EXPECT_EQ(type(SliceClass::kernel, "cross_device_reduce_1stage"), gpu_compute) << "the reference's rule";
  EXPECT_EQ(type(SliceClass::memcpy, "Memcpy HtoD (Pinned -> Device)"), gpu_memcpy_h2d);
  EXPECT_EQ(type(SliceClass::memcpy, "Memcpy DtoH (Device -> Pinned)"), gpu_memcpy_d2h);
  EXPECT_EQ(type(SliceClass::memcpy, "Memcpy DtoD (Device -> Device)"), gpu_memcpy_d2d);
  EXPECT_EQ(type(SliceClass::memcpy, "Memcpy PtoP (Device -> Device)"), gpu_memcpy_h2d);
  EXPECT_EQ(type(SliceClass::memset, "Memset (Device)"), gpu_memcpy_h2d);
}

TEST(ReferenceType, TellsHostFunctionsApart) {
  EXPECT_EQ(type(SliceClass::os_sched, "oncpu", "CAT_CPU"), oncpu);
  EXPECT_EQ(type(SliceClass::os_sched, "OnCPU_4", "CAT_CPU"), oncpu);
  EXPECT_EQ(type(SliceClass::os_sched, "runq", "CAT_CPU"), runq);
  EXPECT_EQ(type(SliceClass::other, "MMAP"), cpu_os_syscall_mem);
  EXPECT_EQ(type(SliceClass::syscall, "write", "CAT_DISK"), disk_read_and_write);
  EXPECT_EQ(type(SliceClass::syscall, "write", "sys"), unknown);
  EXPECT_EQ(type(SliceClass::runtime, "cudaStreamSynchronize"), cpu_sync);
  EXPECT_EQ(type(SliceClass::other, "cuStreamSynchronize", "CAT_APP", "user probe 7"), cpu_sync);
  EXPECT_EQ(type(SliceClass::python, "forward", "python"), unknown);
  EXPECT_EQ(type(SliceClass::other, ""), unknown);
}

TEST(BaseCounter, IsTheLongestKnownBeginning) {
  EXPECT_EQ(base_counter("process_cpu_usage_100"), "process_cpu_usage");
  EXPECT_EQ(base_counter("gpu_mem_used"), "gpu_mem_used");
  EXPECT_EQ(base_counter("host_mem_available"), "");
  EXPECT_EQ(base_counter(""), "");
}

TEST(Normaliser, MakesPercentAFraction) {
  EXPECT_EQ(normaliser("process_cpu_usage", 8), 800);
  EXPECT_EQ(normaliser("gpu_sm_util", 8), 100);
  EXPECT_EQ(normaliser("net_tx_rate", 8), 100);
  EXPECT_EQ(normaliser("gpu_frequency", 8), 1);
}

TEST(ReferenceShortName, ShortensWhatItKnows) {
  EXPECT_EQ(reference_short_name("triton_poi_fused_add_0"), "triton_kernel");
  EXPECT_EQ(reference_short_name("void ncclDevKernel_AllReduce_Sum_f32(ncclDevKernelArgs)"),
            "ncclDevKernel_AllReduce_Sum_f32");
  EXPECT_EQ(reference_short_name("ncclDevKernel"), "nccl_kernel");
  EXPECT_EQ(reference_short_name("gemm"), "gemm");
}

}  // namespace
}  // namespace culprit::deepdive
