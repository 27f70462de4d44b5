#include "record/environment/packages.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

namespace culprit::record {

namespace {

constexpr std::array kFrameworks = {"torch",
                                    "torchvision",
                                    "torchaudio",
                                    "torchao",
                                    "triton",
                                    "vllm",
                                    "vllm-flash-attn",
                                    "sglang",
                                    "sgl-kernel",
                                    "transformers",
                                    "tokenizers",
                                    "safetensors",
                                    "accelerate",
                                    "peft",
                                    "diffusers",
                                    "datasets",
                                    "deepspeed",
                                    "megatron-core",
                                    "transformer-engine",
                                    "apex",
                                    "flash-attn",
                                    "flashinfer",
                                    "flashinfer-python",
                                    "xformers",
                                    "bitsandbytes",
                                    "numpy",
                                    "scipy",
                                    "pandas",
                                    "jax",
                                    "jaxlib",
                                    "flax",
                                    "tensorflow",
                                    "keras",
                                    "tensorrt",
                                    "tensorrt-llm",
                                    "onnxruntime",
                                    "onnxruntime-gpu",
                                    "cupy",
                                    "numba",
                                    "ray",
                                    "lightning",
                                    "pytorch-lightning",
                                    "uvloop",
                                    "fastapi",
                                    "uvicorn",
                                    "pyzmq",
                                    "lmdeploy",
                                    "ninja",
                                    "outlines",
                                    "xgrammar",
                                    "mamba-ssm",
                                    "causal-conv1d",
                                    "einops",
                                    "timm",
                                    "optimum",
                                    "auto-gptq",
                                    "cuda-python",
                                    "nvtx",
                                    "mpi4py",
                                    "horovod"};
constexpr std::array kFamilies = {"nvidia-", "cupy-cuda", "jax-cuda"};

bool is_version_part(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// The number after `word` in `path`: "python3.11" -> "3.11".
std::optional<std::string> version_after(std::string_view path, std::string_view word) {
  for (std::size_t at = path.find(word); at != std::string_view::npos; at = path.find(word, at + 1)) {
    std::string_view rest = path.substr(at + word.size());
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos || !is_version_part(rest.substr(0, dot))) continue;
    std::size_t end = dot + 1;
    while (end < rest.size() && rest[end] >= '0' && rest[end] <= '9') ++end;
    if (end > dot + 1) return std::string(rest.substr(0, end));
  }
  return std::nullopt;
}

/// A folder named by a whole version ("/versions/3.11.7/bin"), when it belongs to `minor`.
std::optional<std::string> full_version_in(std::string_view path, const std::string& minor) {
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part.starts_with(minor + ".") && is_version_part(part.substr(minor.size() + 1))) return std::string(part);
  }
  return std::nullopt;
}

}  // namespace

std::string python_version(const std::vector<std::string>& mapped, const std::string& program) {
  std::vector<std::string> paths = {program};
  paths.insert(paths.end(), mapped.begin(), mapped.end());
  for (const std::string& path : paths) {
    const auto minor = version_after(path.substr(path.rfind('/') + 1), "python");
    if (!minor) continue;
    for (const std::string& other : paths)
      if (auto full = full_version_in(other, *minor)) return *full;
    return *minor;
  }
  return {};
}

std::vector<std::string> package_folders(const std::vector<std::string>& mapped, const std::string& program,
                                         const std::string& virtual_environment) {
  std::set<std::string> folders;
  for (const std::string& path : mapped)
    for (const std::string name : {"/site-packages/", "/dist-packages/"}) {
      const std::size_t at = path.find(name);
      if (at != std::string::npos) folders.insert(path.substr(0, at + name.size() - 1));
    }
  std::string version = python_version(mapped, program);
  if (version.empty()) return {folders.begin(), folders.end()};
  if (std::ranges::count(version, '.') == 2) version.resize(version.rfind('.'));
  const auto add_prefix = [&](const std::string& prefix) {
    folders.insert(prefix + "/lib/python" + version + "/site-packages");
    folders.insert(prefix + "/lib/python" + version + "/dist-packages");
  };
  if (!virtual_environment.empty() && virtual_environment.front() == '/') add_prefix(virtual_environment);
  const std::size_t bin = program.rfind("/bin/");
  if (bin != std::string::npos) {
    const std::string prefix = program.substr(0, bin);
    add_prefix(prefix);
    if (prefix == "/usr") {
      add_prefix("/usr/local");
      folders.insert("/usr/lib/python3/dist-packages");
    }
  }
  return {folders.begin(), folders.end()};
}

std::map<std::string, std::string> frameworks(const std::vector<std::string>& names) {
  std::map<std::string, std::string> found;
  for (const std::string& full : names) {
    std::string_view name = full;
    bool info = false;
    for (const std::string_view end : {".dist-info", ".egg-info"})
      if (name.ends_with(end)) {
        name.remove_suffix(end.size());
        info = true;
        break;
      }
    const std::size_t dash = name.find('-');
    if (!info || dash == std::string_view::npos) continue;
    std::string key(name.substr(0, dash));
    for (char& c : key) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      if (c == '_' || c == '.') c = '-';
    }
    std::string_view version = name.substr(dash + 1);
    version = version.substr(0, version.find('-'));  // "-py3.11" of eggs
    constexpr std::size_t kLongest = 64;
    const bool plain = !version.empty() && version.size() <= kLongest && version.front() >= '0' &&
                       version.front() <= '9' && std::ranges::all_of(version, [](char c) {
                         return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                c == '.' || c == '+' || c == '_' || c == '!';
                       });
    if (!plain) continue;
    const bool known = std::ranges::find(kFrameworks, std::string_view(key)) != kFrameworks.end() ||
                       std::ranges::any_of(kFamilies, [&](const char* family) { return key.starts_with(family); });
    if (known) found.emplace(std::move(key), version);
  }
  return found;
}

}  // namespace culprit::record
