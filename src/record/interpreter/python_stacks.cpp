#include "record/interpreter/python_stacks.h"

#include <algorithm>
#include <utility>

namespace culprit::record::interpreter {

namespace {

constexpr Ns kFirstLook = 250'000'000;  // of a process that has just begun: most end before
constexpr Ns kLastLook = 8'000'000'000;
constexpr Ns kLongestLook = 50'000'000;
constexpr std::size_t kMostProcesses = 1024;               // of the map of the programs
constexpr std::size_t kMostFrames = std::size_t{1} << 19;  // of a generation of one process, and of all before: 12 MB
constexpr std::size_t kMostOlder = 360;                    // generations: who waits for an hour
constexpr Ns kGeneration = 10'000'000'000;                 // code may be given back, and its memory become other code
constexpr double kStacksPerSecond = 3000;                  // of threads that block; one takes 1 to 3 us
constexpr Ns kAdaptEvery = 500'000'000;

}  // namespace

PythonStacks::PythonStacks(std::shared_ptr<bpf::Probes> probes) : probes_(std::move(probes)) { probes_->listen(*this); }
PythonStacks::~PythonStacks() { probes_->unlisten(*this); }

void PythonStacks::target_joined(std::int64_t pid) {
  if (processes_.size() >= kMostProcesses) return;
  const auto [found, is_new] = processes_.try_emplace(pid);
  if (!is_new) return;
  found->second.joined_at = monotonic_now();
  // At the begin of a recording all are looked at at once; who joins later has just been forked.
  found->second.look_at = asked_at_ == 0 ? 1 : found->second.joined_at + kFirstLook;
}

void PythonStacks::target_left(std::int64_t pid) {
  if (processes_.erase(pid) > 0) probes_->forget_python(pid);
}

/// From now on every stack is told again.
void PythonStacks::tell(std::int64_t pid, Process& process, Ns now) {
  process.told_at = now;
  process.older_frames += process.frames;
  process.older.emplace_back(std::exchange(process.stacks, {}), std::exchange(process.frames, 0));
  while (process.older.size() > 1 && (process.older_frames > kMostFrames || process.older.size() > kMostOlder)) {
    process.older_frames -= process.older.front().second;
    process.older.pop_front();
  }
  culprit_python frames = process.interpreter.layout->frames;
  frames.threads = process.interpreter.threads;
  frames.generation = ++generation_;
  probes_->set_python(pid, frames);
}

void PythonStacks::look(std::int64_t pid, Process& process, Ns now) {
  process.interpreter = interpreter_of(pid);
  process.look_at = 0;
  if (process.interpreter.kind == Kind::python) {
    process.names = std::make_unique<CodeNames>(pid, *process.interpreter.layout, process.interpreter.code_type);
    tell(pid, process, now);
  } else if (process.interpreter.kind == Kind::unknown) {
    if (std::ranges::find(unknown_, process.interpreter.version) == unknown_.end())
      unknown_.push_back(process.interpreter.version);
  } else if (now - process.joined_at < kLastLook) {
    // Libraries are loaded later, and the interpreter begins later still.
    process.look_at = now + std::max(kFirstLook, now - process.joined_at);
  }
}

void PythonStacks::poll(Ns now) {
  now = monotonic_now();  // what came before may have taken long
  for (auto& [pid, process] : processes_) {
    if (process.names && now - process.told_at >= kGeneration) tell(pid, process, now);
    if (process.look_at == 0 || process.look_at > now) continue;
    if (monotonic_now() - now > kLongestLook) break;  // the others the next time
    look(pid, process, now);
  }
  if (now - asked_at_ < kAdaptEvery) return;
  const std::uint64_t asked = probes_->python_asked();
  if (asked_at_ != 0 && asked > asked_) {
    const double rate = static_cast<double>(asked - asked_) * 1e9 / static_cast<double>(now - asked_at_);
    probes_->take_python_of(kStacksPerSecond / std::max(rate, kStacksPerSecond));
  }
  asked_ = asked;
  asked_at_ = now;
}

void PythonStacks::on_exec(const culprit_task& record) {
  const auto found = processes_.find(record.tgid);
  if (found == processes_.end()) return;
  probes_->forget_python(record.tgid);
  Process begun;
  std::swap(found->second, begun);
  found->second.joined_at = static_cast<Ns>(record.head.at);
  found->second.look_at = found->second.joined_at + kFirstLook;
}

void PythonStacks::on_python_stack(const culprit_python_stack& record) {
  const auto found = processes_.find(record.tgid);
  if (found == processes_.end() || !found->second.names) return;
  Process& process = found->second;
  process.frames += record.count;
  if (process.frames > kMostFrames) tell(record.tgid, process, monotonic_now());
  PythonStack stack;
  stack.cut = record.cut != 0;
  for (std::uint32_t i = 0; i < record.count; ++i) {
    const std::uint64_t code = record.frames[i] & CULPRIT_CODE;
    const auto byte = static_cast<std::uint8_t>(record.frames[i] >> 56);
    const Entries entries = process.interpreter.layout->entries;
    if (entries == Entries::shim && byte == kShim) {
      if (!stack.frames.empty()) stack.frames.back().enters = true;
      continue;
    }
    const bool enters = entries == Entries::each || (entries == Entries::flag && byte != 0);
    stack.frames.push_back({process.names->find(code), enters});
  }
  process.stacks[record.id] = std::make_shared<PythonStack>(std::move(stack));
}

std::shared_ptr<const PythonStack> PythonStacks::find(std::int32_t tgid, std::uint32_t id) const {
  const auto process = processes_.find(tgid);
  if (id == 0 || process == processes_.end()) return nullptr;
  const Process& of = process->second;
  if (const auto stack = of.stacks.find(id); stack != of.stacks.end()) return stack->second;
  for (auto older = of.older.rbegin(); older != of.older.rend(); ++older)
    if (const auto stack = older->first.find(id); stack != older->first.end()) return stack->second;
  return nullptr;
}

}  // namespace culprit::record::interpreter
