// What a name alone says about steps: whether it marks them, what kind of work it is, how much. Computed once per name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/cycles.h"

namespace culprit::cycles {

/// The name with every run of digits as 'N', words of a phase (prefill, decode, extend, ...) as '~', and a bracketed
/// tail cut off, so that the markers of one loop share a family: "step[DECODE bs=3]" -> "step[", "iteration 5" ->
/// "iteration N".
std::string marker_family(std::string_view name);
/// The name with every run of digits as `placeholder`.
std::string pattern_of(std::string_view name, char placeholder);

/// How much a family looks like the marker of a step.
enum class MarkerRank : std::uint8_t {
  denied,         ///< known to be a part of a step (a collective, a layer) or many steps (an epoch)
  input,          ///< takes what a step works on ("dataloader bs=8")
  once_per_step,  ///< once in a step but not at its begin (optimizer, "step.end")
  unknown,
  step_word,      ///< "step", "iteration", "execute_..._context_..."
  profiler_step,  ///< ProfilerStep#N
};
MarkerRank marker_rank(std::string_view name);

/// The last number in the name when it counts iterations ("ProfilerStep#7", "iteration 12").
std::optional<std::int64_t> iteration_number(std::string_view name);
/// The name with that number as 'N' ("ProfilerStep#N"); as it is when there is none.
std::string without_iteration_number(std::string_view name);

/// Phase and workload as the text of a marker states them; `other` and -1 when it does not.
struct MarkerText {
  model::Phase phase = model::Phase::other;
  model::Workload workload;
};
MarkerText read_marker(std::string_view name);

/// What a GPU operation or a host call tells about its place in a step. `draw` is sampling that no layer does: the
/// routing of experts takes the largest, too, but does not draw lots.
enum class Role : std::uint8_t { none, copy_in, embedding, loss, sampling, draw, optimizer, copy_out, sync, count_ };
Role role_of_kernel(std::string_view name);
Role role_of_copy(std::string_view name);
/// Of an operator of a framework ("aten::multinomial"), where there is no GPU work to look at.
Role role_of_operator(std::string_view name);
bool is_synchronisation(std::string_view host_call);
bool is_graph_launch(std::string_view host_call);
inline bool begins_step(Role r) { return r == Role::copy_in || r == Role::embedding; }
inline bool ends_step(Role r) {
  return r == Role::sampling || r == Role::draw || r == Role::optimizer || r == Role::copy_out || r == Role::sync;
}

/// Bits: what the presence of a name in a cycle says about its phase.
/// `kHintQueries`: attention of many queries at once. Prefill in a server of a language model; every forward pass of
/// other models (diffusion, vision) has it, too.
/// `kHintUpdate`: a part of an optimizer that runs once per parameter.
enum PhaseHint : std::uint8_t { kHintPrefill = 1, kHintDecode = 2, kHintTrain = 4, kHintQueries = 8, kHintUpdate = 16 };
std::uint8_t phase_hint_of_kernel(std::string_view name);
std::uint8_t phase_hint_of_host(std::string_view name);

/// One of numbered siblings of a model: "FSDP::pre_forward (blocks.7.mlp), op_id = 12", "DecoderLayer_7", "layers.7".
struct NumberedPart {
  std::string family;  ///< the name with every run of digits as 'N'
  std::int64_t number = 0;
};
std::optional<NumberedPart> numbered_part(std::string_view name);

/// Functions that never delimit cycles: wrappers, and waits for requests or threads.
bool is_denied_function(std::string_view name);
/// A part of a model rather than a step of it ("DecoderLayer", "Attention", "Linear").
bool is_model_part(std::string_view name);
/// A function in which the host waits for requests to come.
bool is_waiting_for_requests(std::string_view name);
/// Kernels and ranges in which several ranks take part.
bool is_collective(std::string_view name);

}  // namespace culprit::cycles
