// What share of the CPUs the program may have, by its settings, and how many of its own threads want one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"
#include "diagnose/cpu.h"
#include "diagnose/text.h"
#include "model/settings.h"

namespace culprit::diagnose {

namespace {

using model::Verdict;

constexpr std::string_view kBetween = " / ";  // of values that a fact had at different times, or of several recordings

std::vector<std::string_view> values_of(std::string_view text) {
  std::vector<std::string_view> values;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kBetween), text.size());
    values.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + kBetween.size()));
  }
  return values;
}

/// "0-1", "0 or 0-1 (it changed)".
std::string shown(const std::string& text) {
  const auto values = values_of(text);
  return values.size() < 2 ? text : fmt::format("{} (it changed)", fmt::join(values, " or "));
}

/// CPUs of a list like "0-3,8"; none: it is no such list.
std::optional<double> cpus_of(std::string_view list) {
  double sum = 0;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), part.size() + 1));
    const std::size_t dash = part.find('-');
    const auto first = parse_number<double>(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number<double>(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    sum += *last - *first + 1;
  }
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

std::optional<double> number_of(std::string_view text) { return parse_number<double>(text); }

/// How soon a policy gets a CPU.
std::optional<double> policy_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, double>, 7> kPolicies = {
      {{"idle", 0}, {"batch", 1}, {"other", 2}, {"ext", 2}, {"fifo", 3}, {"round_robin", 3}, {"deadline", 4}}};
  const auto* const found = std::ranges::find(kPolicies, name, &std::pair<std::string_view, double>::first);
  return found == kPolicies.end() ? std::nullopt : std::optional(found->second);
}

using Measure = std::optional<double> (*)(std::string_view);

/// The mean of the values that it had.
std::optional<double> mean_of(std::string_view text, Measure measure) {
  double sum = 0;
  const auto values = values_of(text);
  for (const std::string_view value : values) {
    const auto number = measure(value);
    if (!number) return std::nullopt;
    sum += *number;
  }
  return values.empty() ? std::nullopt : std::optional(sum / static_cast<double>(values.size()));
}

/// A fact of the targets that differs.
struct TargetFact {
  Sides sum;                        ///< of all targets of which both sides tell it
  std::array<std::string, 2> text;  ///< without and with: of the target in which it differs most
  bool first = true;                ///< that is the first target
};

/// The number in "env.target.cpus_allowed" (0) or "env.target12.cpus_allowed"; nothing: another key.
std::optional<unsigned> target_of(std::string_view key, std::string_view name) {
  constexpr std::string_view kBegin = "env.target";
  if (!key.starts_with(kBegin) || !key.ends_with(name)) return std::nullopt;
  key.remove_prefix(kBegin.size());
  key.remove_suffix(std::min(key.size(), name.size()));
  if (!key.ends_with('.')) return std::nullopt;
  key.remove_suffix(1);
  return key.empty() ? std::optional(0U) : parse_number<unsigned>(key);
}

/// Targets are numbered as they came, which may be another one each time: all of them together count that both sides
/// have.
std::optional<TargetFact> target_fact(const Evidence& evidence, std::string_view name, Measure measure) {
  const std::size_t side = evidence.side();
  std::optional<TargetFact> fact;
  double most = 0;
  for (const model::EnvironmentChange& change : evidence.comparison().environment) {
    const auto target = target_of(change.key, name);
    if (!target) continue;
    std::array text = {change.value[1 - side], change.value[side]};
    const auto without = mean_of(text[0], measure);
    const auto with = mean_of(text[1], measure);
    if (!without || !with) continue;
    if (!fact) fact.emplace();
    fact->sum.without += *without;
    fact->sum.with += *with;
    if (std::abs(*with - *without) <= most) continue;
    most = std::abs(*with - *without);
    fact->text = std::move(text);
    fact->first = *target == 0;
  }
  return fact;
}

std::string_view subject(const TargetFact& fact) { return fact.first ? "It" : "One of its processes"; }

}  // namespace

std::string fewer_cpus(const Evidence& evidence) {
  if (const auto allowed = target_fact(evidence, "cpus_allowed", cpus_of); allowed && allowed->sum.rise() < 0)
    return fmt::format("{} may use CPUs {} instead of {}", subject(*allowed), shown(allowed->text[1]),
                       shown(allowed->text[0]));
  if (const auto group = evidence.counter("cgroup.cpuset.cpus"); group && group->with > 0 && group->rise() < 0)
    return fmt::format("Its control group may use {} CPUs, on the average", instead_number(*group));
  return {};
}

std::vector<std::string> lowered(const Evidence& evidence) {
  constexpr double kNice = 2;      // by so much it rose
  constexpr double kWeight = 0.7;  // of what it was, or less: about as much
  std::vector<std::string> sentences;
  if (const auto nice = target_fact(evidence, "sched.nice", number_of); nice && nice->sum.rise() >= kNice)
    sentences.push_back(
        fmt::format("{} runs at nice {} instead of {}", subject(*nice), shown(nice->text[1]), shown(nice->text[0])));
  if (const auto policy = target_fact(evidence, "sched.policy", policy_of); policy && policy->sum.rise() < 0)
    sentences.push_back(fmt::format("{} runs by the policy {} instead of {}", subject(*policy), shown(policy->text[1]),
                                    shown(policy->text[0])));
  for (const std::string_view what : {"weight", "shares"})
    if (const auto weight = target_fact(evidence, fmt::format("cgroup.cpu.{}", what), number_of);
        weight && weight->sum.ratio() <= kWeight)
      sentences.push_back(fmt::format("The cpu.{} of {} control group is {} instead of {}", what,
                                      weight->first ? "its" : "the", shown(weight->text[1]), shown(weight->text[0])));
  return sentences;
}

namespace {

/// Threads that waited for a CPU at once, on the average. Nothing: not known.
Sides waiting_at_once(const Evidence& evidence) {
  if (const auto& work = evidence.comparison().work) {
    const Sides rate = evidence.turned(work->throughput.value);
    const Sides wait = evidence.step()->runnable;
    if (work->throughput.unit != "1/s" || !(rate.without > 0) || !(rate.with > 0)) return {};
    return {wait.without * rate.without / 1e9, wait.with * rate.with / 1e9};
  }
  const Sides all = evidence.states([](std::string_view state) { return state == "runnable"; });
  const Sides period = evidence.states([](std::string_view state) { return state == "period"; });
  if (!(period.without > 0) || !(period.with > 0)) return {};
  return {all.without / period.without, all.with / period.with};
}

/// What the thread of the steps waited longer in futex, as for threads of its own that had no CPU, ns.
double waited_for_siblings(const Evidence& evidence) {
  if (evidence.comparison().work || evidence.comparison().host->step_thread.empty()) return 0;
  const double in_queue =
      evidence.states([](std::string_view state) { return state == "runnable"; }).rise() - queue_rise(evidence);
  const double in_futex = evidence.states([](std::string_view state) { return state == "blocked in futex"; }).rise();
  return std::clamp(evidence.felt(std::max(0.0, in_futex)), 0.0, std::max(0.0, in_queue));
}

/// Something else that makes its threads wait for a CPU, or makes more of them: then they are not too many of
/// themselves.
bool is_otherwise_explained(const Evidence& evidence) {
  constexpr double kMoreLoad = 1.05;
  constexpr double kMostlyOther = 0.5;
  if (!fewer_cpus(evidence).empty() || !lowered(evidence).empty()) return true;
  const auto is_quota = [](const model::EnvironmentChange& fact) {
    return target_of(fact.key, "cgroup.cpu.quota").has_value();
  };
  if (std::ranges::any_of(evidence.comparison().environment, is_quota) || evidence.rise("cgroup.cpu.quota") != 0)
    return true;
  if (evidence.rise("host.cpu.steal") >= kLeastSteal) return true;
  if (const auto clock = evidence.counters("host.cpu", ".frequency"); clock && clock->ratio() <= 1 - kLeastFrequency)
    return true;
  // A thread for each client, or for each that waits.
  if (evidence.turned(evidence.comparison().host->answered_per_second).ratio() > kMoreLoad) return true;
  if (evidence.rise("target.tcp.connections") >= 1) return true;
  // Steps work on something else, and like ones do not take as much longer.
  return std::ranges::any_of(evidence.comparison().cycle_times, [&](const model::CycleTimeOutcome& outcome) {
    const double of_all = evidence.turned(outcome.all_ns).rise();
    const bool alike = model::is_judged(outcome) && evidence.turned(outcome.time_ns).rise() >= kMostlyOther * of_all;
    return outcome.other_share >= kMostlyOther && !alike;
  });
}

/// Settings that say how many threads or processes there are.
std::vector<std::string> settings_of_threads(const Evidence& evidence) {
  std::vector<std::string> sentences;
  for (const model::SettingChange& setting : model::settings_that_differ(evidence.comparison().environment)) {
    const std::string name = to_lower(setting.what);
    const auto names = [&](std::string_view word) { return name.find(word) != std::string::npos; };
    if (setting.detail != "option" && setting.detail != "variable") continue;
    if (!names("thread") && !names("worker") && !names("jobs") && !names("parallel")) continue;
    sentences.push_back(fmt::format("{} is {} instead of {}", setting.what, setting.value[evidence.side()],
                                    setting.value[1 - evidence.side()]));
  }
  return sentences;
}

}  // namespace

std::string first_rival(const Evidence& evidence, double least, bool is_new) {
  const Sides all = evidence.states([](std::string_view state) { return state.starts_with("runnable"); });
  const model::OffCpuChanges& waits = evidence.comparison().off_cpu;
  const auto had_so_much = [&](const model::OffCpuChange& rival) {
    const double rise = evidence.turned(rival.ns_per_unit).rise();
    return !rival.name.empty() && all.rise() > 0 && rise >= least * all.rise();
  };
  const auto sentence = [&](const model::OffCpuChange& rival) {
    return fmt::format("While they waited {} had the CPUs, for {} per {} of all threads together", rival.name,
                       instead(evidence.turned(rival.ns_per_unit)), waits.per);
  };
  if (!is_new)
    for (const model::OffCpuChange& rival : waits.rivals)
      if (had_so_much(rival)) return sentence(rival);
  const model::OffCpuChange& newcomer = waits.newcomers.at(evidence.side());
  return had_so_much(newcomer) ? sentence(newcomer) : std::string();
}

void affinity(const Evidence& evidence, Verdicts& verdicts) {
  if (!felt_queue(evidence)) return;
  std::string fewer = fewer_cpus(evidence);
  if (fewer.empty()) return;
  Verdict verdict = cpu_verdict(evidence, "affinity", 0.9);
  verdict.impact_ns = queue_rise(evidence);
  verdict.evidence = {std::move(fewer), queue_text(evidence)};
  if (const double others = more_beside(evidence).cpus; others > kLeastOthers)
    verdict.against.push_back(fmt::format("Programs beside it took {:.2g} CPUs more, too", others));
  verdict.next_step = "see who set its affinity or cpuset (taskset -p, cpuset.cpus)";
  verdicts.push_back(std::move(verdict));
}

void priority(const Evidence& evidence, Verdicts& verdicts) {
  if (!felt_queue(evidence)) return;
  std::vector<std::string> sentences = lowered(evidence);
  if (sentences.empty()) return;
  // It only matters where somebody else wants the CPUs.
  const auto behind = evidence.behind_others();
  if (behind && behind->rise() < kBehindThem * queue_rise(evidence)) return;
  Verdict verdict = cpu_verdict(evidence, "priority", behind ? 0.9 : 0.6);
  verdict.impact_ns = queue_rise(evidence);
  verdict.evidence = std::move(sentences);
  verdict.evidence.push_back(queue_text(evidence));
  if (behind)
    verdict.evidence.push_back(
        fmt::format("Of that, programs which were not recorded had the CPU for {}", instead(*behind)));
  else
    verdict.against.emplace_back("Who had the CPUs meanwhile was not recorded");
  if (const double others = more_beside(evidence).cpus; others > kLeastOthers)
    verdict.against.push_back(
        fmt::format("Programs beside it took {:.2g} CPUs more, as they would for both reasons", others));
  verdict.next_step =
      "see who lowered it (nice, chrt, cpu.weight, cpu.shares), or give the programs beside it other CPUs";
  verdicts.push_back(std::move(verdict));
}

void own_threads(const Evidence& evidence, Verdicts& verdicts) {
  constexpr double kOneMore = 0.9;       // threads
  constexpr double kManyMore = 1.1;      // times
  constexpr double kLeastWaiting = 0.3;  // threads more that waited at once
  constexpr double kMostWaiting = 1.25;  // times the threads that it has more
  constexpr double kHardlyBehind = 0.25;
  constexpr double kHalfMore = 1.5;  // times: so many threads use up the same quota sooner
  const auto step = evidence.step();
  const auto threads = evidence.counter("process.threads");
  if (!step || !threads || threads->rise() < kOneMore || threads->ratio() < kManyMore) return;
  const bool sums_threads = !evidence.comparison().work && evidence.comparison().host->step_thread.empty();
  if (!(evidence.slowdown() >= kLeastImpact)) return;
  const Sides waiting = waiting_at_once(evidence);
  if (waiting.rise() < kLeastWaiting || waiting.rise() > kMostWaiting * threads->rise()) return;
  const Sides spinning = queue_of_siblings(evidence);
  const double spun = spinning.rise() > 0 ? std::min(spinning.rise(), step->on_cpu.rise()) : 0;
  const double in_futex = waited_for_siblings(evidence);
  const double felt = queue_rise(evidence) + in_futex + spun;
  if (!felt_queue(evidence) && felt < kMuchOfStep * step->all().without) return;
  // Behind whom it waited has to be known: who came beside it leaves its threads fewer CPUs, too.
  const auto behind = evidence.behind_others();
  const MoreBeside beside = more_beside(evidence);
  if (!behind || sums_threads || is_otherwise_explained(evidence)) return;
  if (behind->rise() >= (beside.cpus < kFewOthers ? kBehindThem : kHardlyBehind) * felt) return;
  // Who takes a CPU makes one thread more wait, but for servers that start one for each that waits.
  const std::vector<std::string> settings = settings_of_threads(evidence);
  const bool others = beside.cpus >= kLeastOthers;
  // A quota alone makes few threads more wait, and so does a machine that is full, where each step computes more.
  if (has_detail(verdicts, "throttled") && settings.empty() && threads->ratio() < kHalfMore) return;
  if (settings.empty() && !(spun > 0) && step->on_cpu.rise() >= felt) return;
  if (others && (settings.empty() || waiting.rise() < kFarMore * beside.cpus)) return;
  Verdict verdict = cpu_verdict(evidence, "own_threads", settings.empty() || others ? 0.7 : 0.9);
  verdict.impact_ns = felt;
  verdict.evidence = {fmt::format("Its processes have {} threads, of which {} waited for a CPU at once",
                                  instead_number(*threads), instead_number(waiting))};
  if (queue_rise(evidence) > 0) verdict.evidence.push_back(queue_text(evidence));
  verdict.evidence.insert(verdict.evidence.end(), settings.begin(), settings.end());
  if (in_futex > 0)
    verdict.evidence.push_back(
        fmt::format("That of the steps waited {} longer in futex, as for those", format_duration(in_futex)));
  if (spun > 0)
    verdict.evidence.push_back(
        fmt::format("That of the steps ran {} longer meanwhile, as who spins for those does", format_duration(spun)));
  if (std::string rival = first_rival(evidence, kBehindThem); !rival.empty())
    verdict.evidence.push_back(std::move(rival));
  verdict.evidence.push_back(
      fmt::format("Of its wait for a CPU programs which were not recorded had one for {}", instead(*behind)));
  // The quota is what it was: more threads use it up sooner.
  for (Verdict& v : verdicts)
    if (v.detail == "throttled") {
      verdict.evidence.insert(verdict.evidence.end(), v.evidence.begin(), v.evidence.begin() + 1);
      v.cause.clear();
    }
  std::erase_if(verdicts, [](const Verdict& v) { return v.cause.empty(); });
  if (others) verdict.against.push_back(fmt::format("Programs beside it took {:.2g} CPUs more, too", beside.cpus));
  if (settings.empty() && !evidence.tells_work())
    verdict.against.emplace_back("More clients at once would look alike, where each has a thread of its own");
  verdict.next_step = "fewer threads (OMP_NUM_THREADS, torch.set_num_threads, workers), or more CPUs for them";
  verdicts.push_back(std::move(verdict));
}

}  // namespace culprit::diagnose
