#include "record/bpf/kernel_layout.h"

#include <bpf/btf.h>
#include <gtest/gtest.h>

#include <memory>

namespace culprit::record::bpf {
namespace {

using Btf = std::unique_ptr<btf, void (*)(btf*)>;

struct Layout {
  const char* run_queue_member = "rq";
  const char* count_variable = "__preempt_count";
  bool in_pcpu_hot = false;
};

/// What a kernel tells of itself, cut to what is looked for.
Btf kernel_like(const Layout& layout) {
  Btf kernel(btf__new_empty(), btf__free);
  btf* to = kernel.get();
  const int number = btf__add_int(to, "int", 4, BTF_INT_SIGNED);
  const int queue = btf__add_struct(to, "rq", 3584);
  const int queue_pointer = btf__add_ptr(to, queue);
  const int fair = btf__add_struct(to, "cfs_rq", 64);
  btf__add_field(to, layout.run_queue_member, queue_pointer, 8 * 8, 0);
  const int fair_pointer = btf__add_ptr(to, fair);
  btf__add_struct(to, "sched_entity", 64);
  btf__add_field(to, "cfs_rq", fair_pointer, 16 * 8, 0);
  // struct pcpu_hot { union { struct { struct task_struct *current_task; int preempt_count; }; u8 pad[64]; }; };
  const int fields = btf__add_struct(to, nullptr, 64);
  btf__add_field(to, "current_task", queue_pointer, 0, 0);
  btf__add_field(to, "preempt_count", number, 8 * 8, 0);
  const int both = btf__add_union(to, nullptr, 64);
  btf__add_field(to, nullptr, fields, 0, 0);
  const int hot = btf__add_struct(to, "pcpu_hot", 64);
  btf__add_field(to, nullptr, both, 0, 0);
  const int queues = btf__add_var(to, "runqueues", BTF_VAR_GLOBAL_ALLOCATED, queue);
  const int count =
      btf__add_var(to, layout.count_variable, BTF_VAR_GLOBAL_ALLOCATED, layout.in_pcpu_hot ? hot : number);
  btf__add_datasec(to, ".data..percpu", 200'000);
  btf__add_datasec_var_info(to, count, 86'064, 4);
  btf__add_datasec_var_info(to, queues, 178'816, 3584);
  return kernel;
}

TEST(PreemptCount, IsAsFarFromTheRunQueueAsTheVariablesOfACpuAreApart) {
  EXPECT_EQ(preempt_count_from_run_queue(kernel_like({}).get()), 86'064 - 178'816);
}

TEST(PreemptCount, IsFoundInTheStructureThatSomeKernelsKeepItIn) {
  const Btf kernel = kernel_like({.count_variable = "pcpu_hot", .in_pcpu_hot = true});
  EXPECT_EQ(preempt_count_from_run_queue(kernel.get()), 86'064 + 8 - 178'816);
}

TEST(PreemptCount, IsUnknownWhereTheKernelKeepsNone) {
  EXPECT_EQ(preempt_count_from_run_queue(kernel_like({.count_variable = "other"}).get()), std::nullopt);
}

TEST(PreemptCount, IsUnknownWhereAThreadDoesNotKnowItsRunQueue) {
  EXPECT_EQ(preempt_count_from_run_queue(kernel_like({.run_queue_member = "other"}).get()), std::nullopt);
}

}  // namespace
}  // namespace culprit::record::bpf
