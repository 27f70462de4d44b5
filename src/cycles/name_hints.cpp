#include "cycles/name_hints.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>

#include "core/text.h"

namespace culprit::cycles {

namespace {

constexpr std::size_t kMaxName = 4096;  // of a name only so much is looked at

std::string folded(std::string_view name) {
  std::string out(name.substr(0, kMaxName));
  std::ranges::transform(out, out.begin(), [](char c) { return to_lower(c); });
  return out;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

/// `word` bounded by characters that are no letters.
bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool left = at == 0 || !is_letter(text[at - 1]);
    const bool right = at + word.size() == text.size() || !is_letter(text[at + word.size()]);
    if (left && right) return true;
  }
  return false;
}
bool has_any_word(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return has_word(text, word); });
}

/// The number that begins at `at`; -1 when there is none.
std::int64_t number_at(std::string_view text, std::size_t at) {
  std::int64_t value = -1;
  if (at < text.size() && is_digit(text[at]) &&
      std::from_chars(text.data() + at, text.data() + text.size(), value).ec != std::errc())
    return -1;
  return value;
}

/// The number after the first of `keys` that is followed by one. A key that ends a longer one ("max_tokens=") is none.
std::int64_t number_after(std::string_view text, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
      if (at != 0 && (is_letter(text[at - 1]) || is_digit(text[at - 1]) || text[at - 1] == '_')) continue;
      if (const std::int64_t value = number_at(text, at + key.size()); value >= 0) return value;
    }
  return -1;
}

/// The number before `key` and one blank: "3 ctx reqs".
std::int64_t number_before(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos || at == 0) return -1;
  std::size_t begin = at;
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  return begin == at ? -1 : number_at(text, begin);
}

constexpr std::array<std::string_view, 7> kPhaseWords = {"prefill",    "decode",  "extend", "mixed",
                                                         "generation", "context", "idle"};

model::Phase phase_of(std::int64_t context, std::int64_t generation) {
  if (context > 0 && generation > 0) return model::Phase::mixed;
  if (context > 0) return model::Phase::prefill;
  return generation > 0 ? model::Phase::decode : model::Phase::other;
}

}  // namespace

std::string marker_family(std::string_view name) {
  const std::string text(name.substr(0, kMaxName));
  std::string_view rest = text;
  if (const std::size_t bracket = rest.find('['); bracket != std::string_view::npos && bracket != 0)
    rest = rest.substr(0, bracket + 1);
  std::string out;
  for (std::size_t i = 0; i < rest.size();) {
    if (is_digit(rest[i])) {
      while (i < rest.size() && is_digit(rest[i])) ++i;
      out += 'N';
      continue;
    }
    if (i == 0 || !is_letter(rest[i - 1])) {
      std::size_t end = i;
      while (end < rest.size() && is_letter(rest[end])) ++end;
      const std::string word = folded(rest.substr(i, end - i));
      if (std::ranges::find(kPhaseWords, word) != kPhaseWords.end()) {
        out += '~';
        i = end;
        continue;
      }
    }
    out += rest[i++];
  }
  return out;
}

MarkerRank marker_rank(std::string_view name) {
  if (name.starts_with("ProfilerStep#")) return MarkerRank::profiler_step;
  const std::string text = folded(name);
  if (has_any(text, {"optimizer.step", "step.end"})) return MarkerRank::once_per_step;
  if (text.starts_with("dataloader bs=")) return MarkerRank::input;
  if (has_any(text, {"nccl",           "gloo",        "rccl",      "mpi:",     "compiledfxgraph",
                     "torch-compiled", "torchdynamo", "autograd",  "aten::",   "zero_grad",
                     "dataloader",     "c10d",        "fsdp::",    "epoch",    "layer",
                     "awaitable",      "wait()",      "all2all",   "alltoall", "all_to_all",
                     "reduce_scatter", "all_gather",  "attention", "mlp",      "pytorch profiler",
                     "capture_"}))
    return MarkerRank::denied;
  if (has_any_word(text, {"step", "steps", "iteration", "iter"})) return MarkerRank::step_word;
  if (text.starts_with("execute_") && has_any(text, {"context", "generation", "diffusion"}))
    return MarkerRank::step_word;
  if (has_any(text, {"forward_step", "train_step", "training_step", "run_batch", "execute_model"}))
    return MarkerRank::step_word;
  // Operators and autograd functions that PyTorch writes as NVTX ranges.
  if (has_any(text, {", op_id = ", ", seq = "})) return MarkerRank::denied;
  return MarkerRank::unknown;
}

namespace {

struct IterationNumber {
  std::size_t at = 0;
  std::int64_t value = 0;
};

std::optional<IterationNumber> find_iteration_number(std::string_view name) {
  if (name.size() > kMaxName || name.find_first_of("[(=") != std::string_view::npos) return std::nullopt;
  for (const std::string_view mark : {"#", "step", "Step", "iteration", "Iteration", "iter", "Iter"}) {
    const std::size_t at = name.rfind(mark);
    if (at == std::string_view::npos) continue;
    std::size_t digit = at + mark.size();
    while (digit < name.size() &&
           (name[digit] == ' ' || name[digit] == '_' || name[digit] == ':' || name[digit] == '#' || name[digit] == '-'))
      ++digit;
    if (const std::int64_t value = number_at(name, digit); value >= 0) return IterationNumber{digit, value};
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> iteration_number(std::string_view name) {
  const auto number = find_iteration_number(name);
  return number ? std::optional(number->value) : std::nullopt;
}

std::string without_iteration_number(std::string_view name) {
  std::string out(name);
  const auto number = find_iteration_number(name);
  if (!number) return out;
  std::size_t end = number->at;
  while (end < name.size() && is_digit(name[end])) ++end;
  return out.replace(number->at, end - number->at, "N");
}

MarkerText read_marker(std::string_view name) {
  MarkerText out;
  const std::string text = folded(name);
  model::Workload& w = out.workload;

  // execute_<tokens>_context_<requests>(sq<tokens>...)_generation_<requests>(sq<tokens>...), older:
  // <requests>(<tokens>)
  const std::size_t context_at = text.find("context_");
  const std::size_t generation_at = text.find("generation_");
  if (text.starts_with("execute_") && context_at != std::string::npos && generation_at != std::string::npos) {
    const auto part = [&](std::size_t at) {
      const std::int64_t requests = number_at(text, at);
      const std::size_t open = text.find('(', at);
      std::int64_t tokens = -1;
      if (open != std::string::npos) {
        tokens = number_at(text, open + 1);
        if (tokens < 0 && text.compare(open + 1, 2, "sq") == 0) tokens = number_at(text, open + 3);
      }
      return std::pair(requests, tokens);
    };
    const auto [context, context_tokens] = part(context_at + 8);
    const auto [generation, generation_tokens] = part(generation_at + 11);
    if (context >= 0 && generation >= 0 && context < 1'000'000'000 && generation < 1'000'000'000) {
      w.batch = context + generation;
      w.context_tokens = context_tokens;
      w.decode_tokens = generation_tokens >= 0 ? generation_tokens : generation;
      w.tokens = number_after(text, {"execute_"});
      out.phase = phase_of(context, generation);
      if (out.phase == model::Phase::decode) w.cached_tokens = number_after(text, {"ctx="});
      return out;
    }
  }

  const std::int64_t context = number_before(text, " ctx req");
  const std::int64_t generation = number_before(text, " gen req");
  if (context >= 0 && generation >= 0 && context < 1'000'000'000 && generation < 1'000'000'000) {
    w.batch = context + generation;
    w.decode_tokens = generation;
    out.phase = phase_of(context, generation);
    return out;
  }

  if (has_word(text, "mixed")) {
    out.phase = model::Phase::mixed;
  } else if (has_any_word(text, {"extend", "prefill"})) {
    out.phase = model::Phase::prefill;
  } else if (has_any_word(text, {"decode", "generation"})) {
    out.phase = model::Phase::decode;
  } else if (has_any_word(text, {"train", "training"})) {
    out.phase = model::Phase::train_step;
  }
  w.batch = number_after(text, {"bs=", "batch_size=", "batch=", "num_reqs=", "bs: ", "batch: "});
  w.tokens = number_after(text, {"toks=", "tokens=", "num_tokens=", "num_scheduled_tokens=", "tokens: "});
  if (w.tokens >= 0 && out.phase == model::Phase::prefill) w.context_tokens = w.tokens;
  if (w.tokens >= 0 && out.phase == model::Phase::decode) w.decode_tokens = w.tokens;
  if (out.phase == model::Phase::decode) w.cached_tokens = number_after(text, {"ctx="});
  return out;
}

Role role_of_kernel(std::string_view name) {
  const std::string text = folded(name);
  if (has_any(text, {"adam", "adagrad", "multi_tensor_apply", "multitensorapply", "fused_sgd", "lamb_stage",
                     "optimizer", "muon", "adafactor"}))
    return Role::optimizer;
  if (has_any(text, {"sampling", "argmax", "multinomial", "toppsampl", "topksampl", "gumbel", "sample_token",
                     "distribution_elementwise_grid_stride_kernel<float, 4, at::native::templates::cuda::exponential"}))
    return Role::sampling;
  if (has_any(text,
              {"nll_loss", "cross_entropy", "crossentropy", "log_softmax", "logsoftmax", "mse_loss", "bce_", "loss_"}))
    return Role::loss;
  if (has_any(text, {"rotary_embedding", "rope"})) return Role::none;
  if (has_any(text, {"embedding", "vocab", "indexselect", "vectorized_gather"}) && !has_any(text, {"backward", "grad"}))
    return Role::embedding;
  return Role::none;
}

Role role_of_copy(std::string_view name) {
  const std::string text = folded(name);
  if (has_any(text, {"htod", "hosttodevice", "host -> device"})) return Role::copy_in;
  if (has_any(text, {"dtoh", "devicetohost", "device -> host"})) return Role::copy_out;
  return Role::none;
}

Role role_of_operator(std::string_view name) {
  const std::string text = folded(name);
  if (has_any(text, {"optimizer.step", "aten::_fused_adam", "aten::_fused_sgd", "aten::_fused_adagrad",
                     "aten::_foreach_addcdiv_", "aten::_foreach_addcmul_", "aten::_foreach_lerp_"}))
    return Role::optimizer;
  if (has_any(text, {"backward", "autograd::"})) return Role::none;
  if (has_any(text, {"aten::multinomial", "top_k_top_p_sampling", "sampling_from"})) return Role::draw;
  if (has_any(text, {"argmax", "aten::exponential_"})) return Role::sampling;
  if (has_any(text, {"_loss", "aten::cross_entropy", "aten::log_softmax", "aten::_log_softmax"})) return Role::loss;
  if (has_any(text, {"aten::embedding", "vocab_parallel_embedding"})) return Role::embedding;
  if (has_any(text, {"enumerate(dataloader)", "dataloaderiter.__next__"})) return Role::copy_in;
  if (has_any(text, {"aten::item", "aten::_local_scalar_dense", "aten::tolist"})) return Role::copy_out;
  return Role::none;
}

bool is_synchronisation(std::string_view host_call) {
  return host_call.size() < 64 &&
         has_any(host_call, {"DeviceSynchronize", "StreamSynchronize", "EventSynchronize", "CtxSynchronize"});
}
bool is_graph_launch(std::string_view host_call) {
  return host_call.size() < 64 && host_call.find("GraphLaunch") != std::string_view::npos;
}

std::uint8_t phase_hint_of_kernel(std::string_view name) {
  const std::string text = folded(name);
  if (has_any(text, {"backward", "_bwd_", "bwd_", "dgrad", "wgrad", "nll_loss"}) ||
      role_of_kernel(name) == Role::optimizer)
    return kHintTrain;
  if (has_any(text, {"splitkv", "paged_attention", "decode_attention", "batchdecode", "decode_kernel", "mmha",
                     "_fwd_kernel_stage1", "_fwd_grouped_kernel_stage1", "unified_attention_2d_decode", "flash_mla"}))
    return kHintDecode;
  if (has_any(text, {"prefill", "context_attention", "_extend_"})) return kHintPrefill;
  if (has_any(text, {"flash_fwd_kernel", "fmha_v2", "fmhafwd"})) return kHintQueries;
  return 0;
}

std::uint8_t phase_hint_of_host(std::string_view name) {
  const std::string text = folded(name);
  if (has_any(text, {"autograd::engine", "optimizer.step"})) return kHintTrain;
  if (has_any(text, {"aten::addcdiv_"})) return kHintUpdate;
  if (has_any_word(text, {"forward_extend", "run_prefill", "prefill_forward", "forward_prefill"}) ||
      has_any(text, {"): forward_extend", "): prefill"}))
    return kHintPrefill;
  if (has_any_word(text, {"forward_decode", "run_decode", "decode_forward"}) || has_any(text, {"): decode_step"}))
    return kHintDecode;
  return 0;
}

std::optional<NumberedPart> numbered_part(std::string_view name) {
  const std::string text = folded(name);
  for (const std::string_view word : {"layers", "layer", "blocks", "block"})
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      std::size_t digit = at + word.size();
      if (digit < text.size() && std::string_view("._ #-[").find(text[digit]) != std::string_view::npos) ++digit;
      const std::int64_t number = number_at(text, digit);
      if (number < 0) continue;
      NumberedPart part{{}, number};
      for (std::size_t i = 0; i < text.size(); ++i)
        if (!is_digit(name[i]))
          part.family += name[i];
        else if (i == 0 || !is_digit(name[i - 1]))
          part.family += 'N';
      return part;
    }
  return std::nullopt;
}

bool is_denied_function(std::string_view name) {
  const std::size_t colon = name.rfind("): ");
  const std::string_view last = colon == std::string_view::npos ? name : name.substr(colon + 3);
  for (const std::string_view denied : {"_call_impl", "_wrapped_call_impl", "Event.wait", "Condition.wait", "wait",
                                        "Scheduler.recv_requests", "recv_requests", "decorate_context", "wrapper",
                                        "_fn", "inner", "__call__", "__next__", "__exit__", "__enter__", "run_forever"})
    if (last == denied) return true;
  // Collections of garbage, as the recorder names them, repeat and are nobody's step.
  return name.starts_with("gc generation ") || name.starts_with("<built-in") || name.starts_with("ProfilerStep") ||
         name.find("_contextlib.py(") != std::string_view::npos;
}

bool is_model_part(std::string_view name) {
  const std::string text = folded(name);
  return has_any(text, {"layer", "block", "attention", "mlp", "linear", "norm", "expert", "moe", "aten::", "rope"});
}

bool is_waiting_for_requests(std::string_view name) {
  const std::string text = folded(name);
  return has_any(text, {"recv_requests", "event.wait", "condition.wait", "wait_for_request", "zmq", "epoll",
                        "queue.get", "'poll'", "time.sleep", "'sleep'", "idle"});
}

bool is_collective(std::string_view name) {
  return has_any(name,
                 {"nccl", "rccl", "cross_device_reduce", "all_reduce", "allreduce", "reduce_scatter", "all_gather"});
}

std::string pattern_of(std::string_view name, char placeholder) {
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    if (name[i] < '0' || name[i] > '9') {
      out += name[i++];
      continue;
    }
    while (i < name.size() && name[i] >= '0' && name[i] <= '9') ++i;
    out += placeholder;
  }
  return out;
}

}  // namespace culprit::cycles
