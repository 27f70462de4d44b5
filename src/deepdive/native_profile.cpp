#include "deepdive/native_profile.h"

#include <cmath>
#include <utility>

#include "deepdive/scale.h"

namespace culprit::deepdive {

namespace {

constexpr double kNsPerUs = 1e3;
constexpr double kLongest = 9.2e18;  // ns; nearly the largest Ns

Ns ns_of(double us) {
  const double ns = us * kNsPerUs;
  return std::abs(ns) < kLongest ? std::llround(ns) : 0;  // 0 for NaN, too
}

model::Provenance provenance_of(Provenance provenance) {
  switch (provenance) {
    case Provenance::measured:
      return model::Provenance::measured;
    case Provenance::mixed:
    case Provenance::interpolated:
      return model::Provenance::interpolated;
    case Provenance::none:
      break;
  }
  return model::Provenance::none;
}

}  // namespace

model::Profile native_profile(Profile table) {
  model::Profile profile;
  for (const ProfileCycle& cycle : table.cycles) {
    model::ProfileCycle& out = profile.cycles.emplace_back();
    out.number = cycle.number;
    out.anchor = cycle.anchor;
    out.begin = ns_of(cycle.begin_us);
    out.duration = ns_of(cycle.duration_us);
  }
  for (const ProfileProcess& process : table.processes) profile.processes.push_back({process.pid, process.host});
  for (const FunctionUse& use : table.functions) {
    model::FunctionUse& out = profile.functions.emplace_back();
    out.cycle = use.cycle;
    out.process = use.process;
    out.function = use.function;
    out.device = use.device;
    out.kind = use.kind;
    out.short_name = use.short_name;
    out.count = use.count;
    out.duration = ns_of(use.duration_us);
    out.beta = use.beta_pct / 100;
  }
  for (const ResourceUse& resource : table.resources) {
    model::ResourceUse& out = profile.resources.emplace_back();
    const Scale scale = profile_scale(table.texts[resource.metric], resource.mu_pct);
    out.use = resource.use;
    out.metric = resource.metric;
    out.unit = scale.unit;
    out.provenance = provenance_of(resource.provenance);
    out.mu = scale.to_si(resource.mu_pct);
    out.sigma = scale.to_si(resource.sigma_pct);
  }
  profile.texts = std::move(table.texts);
  return profile;
}

}  // namespace culprit::deepdive
