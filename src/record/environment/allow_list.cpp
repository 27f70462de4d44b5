#include "record/environment/allow_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include "core/text.h"

namespace culprit::record {

namespace {

constexpr std::array kPrefixes = {"NCCL_", "CUDA_",     "OMP_", "TORCH_", "PYTORCH_", "VLLM_",   "SGLANG_", "SGL_",
                                  "MKL_",  "OPENBLAS_", "KMP_", "GOMP_",  "TRITON_",  "CUBLAS_", "CUDNN_"};
constexpr std::array kNames = {"NVIDIA_VISIBLE_DEVICES",
                               "NVIDIA_DRIVER_CAPABILITIES",
                               "NVIDIA_TF32_OVERRIDE",
                               "PYTHONMALLOC",
                               "MALLOC_CONF",
                               "GLIBC_TUNABLES",
                               "GODEBUG"};
/// Taken only when they hold a truth value or a small number.
constexpr std::array kSwitches = {"HF_HUB_OFFLINE",
                                  "HF_DATASETS_OFFLINE",
                                  "TRANSFORMERS_OFFLINE",
                                  "TOKENIZERS_PARALLELISM",
                                  "PYTHONUNBUFFERED",
                                  "PYTHONDONTWRITEBYTECODE",
                                  "PYTHONASYNCIODEBUG",
                                  "PYTHONFAULTHANDLER",
                                  "PYTHONDEVMODE",
                                  "PYTHONTRACEMALLOC",
                                  "PYTHONPERFSUPPORT",
                                  "PYTHON_GIL",
                                  "PYTHON_JIT",
                                  "MALLOC_ARENA_MAX",
                                  "MALLOC_CHECK_",
                                  "MALLOC_PERTURB_",
                                  "MALLOC_TOP_PAD_",
                                  "MALLOC_TRIM_THRESHOLD_",
                                  "MALLOC_MMAP_THRESHOLD_",
                                  "GOMAXPROCS",
                                  "GOGC",
                                  "RAYON_NUM_THREADS",
                                  "TOKIO_WORKER_THREADS",
                                  "UV_THREADPOOL_SIZE",
                                  "NUMEXPR_NUM_THREADS",
                                  "HF_HUB_ENABLE_HF_TRANSFER",
                                  "WORLD_SIZE",
                                  "RANK",
                                  "LOCAL_RANK",
                                  "LOCAL_WORLD_SIZE",
                                  "NODE_RANK"};
constexpr std::array kForbidden = {"KEY",  "TOKEN",   "SECRET",  "PASS", "CRED",    "AUTH", "PRIV", "COOKIE",
                                   "SIGN", "SESSION", "LICENSE", "CERT", "WEBHOOK", "DSN",  "PW"};
constexpr std::array kSecretBegins = {"hf_", "sk-", "sk_",        "ghp_",   "gho_",  "glpat-",  "AKIA",  "ASIA",
                                      "eyJ", "xox", "-----BEGIN", "nvapi-", "ya29.", "Bearer ", "Basic "};

bool is_switch(std::string_view value) {
  constexpr std::array kWords = {"true", "false", "yes", "no", "on", "off"};
  if (value.empty() || value.size() > 6) return false;
  if (std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; })) return true;
  return std::ranges::find(kWords, to_lower(value)) != kWords.end();
}

bool has_forbidden_word(std::string_view name) {
  std::string upper(name);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return std::ranges::any_of(kForbidden, [&](const char* word) { return upper.find(word) != std::string::npos; });
}

/// Every URL without what stands behind its host: paths and queries name users, buckets and keys.
std::string without_url_paths(std::string_view value) {
  std::string out;
  while (!value.empty()) {
    const std::size_t scheme = value.find("://");
    if (scheme == std::string_view::npos) break;
    const std::size_t host = scheme + 3;
    const std::size_t host_end = std::min(value.find_first_of("/?#, ;\"'", host), value.size());
    const std::size_t end = std::min(value.find_first_of(", ;\"'", host_end), value.size());
    out += value.substr(0, host_end);
    if (end - host_end > 1) out += "/<hidden>";
    value.remove_prefix(end);
  }
  out += value;
  return out;
}

/// A run of at least 20 characters of base64 or hexadecimal with both letters and digits in it.
bool has_secret_run(std::string_view value) {
  constexpr std::size_t kSecretRun = 20;
  std::size_t run = 0;
  bool letter = false;
  bool digit = false;
  for (const char c : value) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_letter && !is_digit && c != '+' && c != '=') {
      run = 0;
      letter = digit = false;
      continue;
    }
    ++run;
    letter = letter || is_letter;
    digit = digit || is_digit;
    if (run >= kSecretRun && letter && digit) return true;
  }
  return false;
}

bool looks_secret(std::string_view value) {
  const std::size_t scheme = value.find("://");
  if (scheme != std::string_view::npos && value.find('@', scheme) != std::string_view::npos) return true;
  for (const char* begin : kSecretBegins)
    for (std::size_t at = value.find(begin); at != std::string_view::npos; at = value.find(begin, at + 1))
      if (at == 0 || std::string_view(" ,;:=\"'").find(value[at - 1]) != std::string_view::npos) return true;
  const std::string lower = to_lower(value);
  for (const char* word : {"password", "passwd", "secret", "token=", "api_key", "apikey", "authorization"})
    if (lower.find(word) != std::string::npos) return true;
  return has_secret_run(value);
}

/// FNV-1a: tells two long values apart, no more.
std::uint64_t digest(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

/// "0.9", "-1", "512m", "1e-3".
bool is_number(std::string_view value) {
  constexpr std::size_t kLongest = 12;
  if (value.empty() || value.size() > kLongest) return false;
  const std::size_t first = value.find_first_not_of("+-.");
  if (first == std::string_view::npos || value[first] < '0' || value[first] > '9') return false;
  if (std::string_view("kKmMgGtT").find(value.back()) != std::string_view::npos) value.remove_suffix(1);
  return value.find_first_not_of("0123456789.+-e") == std::string_view::npos;
}

bool is_shown_option(std::string_view value) {
  constexpr std::array kWords = {"auto",  "none",  "trace",    "debug", "info",    "warning",  "warn",
                                 "error", "fatal", "critical", "half",  "float16", "bfloat16", "float32",
                                 "float", "int8",  "int4",     "fp8",   "fp16",    "bf16",     "fp32"};
  return is_switch(value) || is_number(value) || std::ranges::find(kWords, to_lower(value)) != kWords.end();
}

/// Takes the first of several that have NUL between them off `text`.
std::string_view next_argument(std::string_view& text) {
  const std::size_t end = text.find('\0');
  const std::string_view argument = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return argument;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> allowed_options(std::string_view cmdline) {
  constexpr std::size_t kMost = 100;
  constexpr std::size_t kLongestName = 64;
  std::map<std::string, std::string> options;
  next_argument(cmdline);  // the program
  while (!cmdline.empty() && options.size() < kMost) {
    const std::string_view argument = next_argument(cmdline);
    if (argument == "--") break;  // what follows is another program's, or no option
    if (!argument.starts_with("--")) continue;
    const std::size_t equals = argument.find('=');
    std::string name = to_lower(argument.substr(2, equals == std::string_view::npos ? equals : equals - 2));
    std::ranges::replace(name, '_', '-');
    const bool plain = !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    });
    std::string variable = name;
    std::ranges::replace(variable, '-', '_');
    std::string_view value;
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
    } else {
      std::string_view rest = cmdline;
      const std::string_view next = next_argument(rest);
      if (!next.empty() && (!next.starts_with("-") || is_number(next))) value = next;
    }
    if (!plain || has_forbidden_word(variable)) continue;
    if (value.empty() && equals == std::string_view::npos)
      options.insert_or_assign(std::move(name), "set");
    else if (is_shown_option(value))
      options.insert_or_assign(std::move(name), std::string(value));
  }
  return {options.begin(), options.end()};
}

bool is_allowed_variable(std::string_view name) {
  const auto is = [&](const char* other) { return name == other; };
  if (std::ranges::any_of(kSwitches, is) || std::ranges::any_of(kNames, is)) return true;
  if (has_forbidden_word(name)) return false;
  return std::ranges::any_of(kPrefixes, [&](const char* prefix) { return name.starts_with(prefix); });
}

std::string shown_value(std::string_view value) {
  constexpr std::size_t kLongest = 200;
  constexpr std::size_t kBegin = 80;
  if (looks_secret(value)) return "<hidden: looks like a secret>";
  std::string shown = without_url_paths(value);
  if (shown.size() <= kLongest) return shown;
  shown.resize(kBegin);
  return fmt::format("{}... <{} bytes, digest {:016x}>", shown, value.size(), digest(value));
}

std::vector<std::pair<std::string, std::string>> allowed_variables(std::string_view environ) {
  std::vector<std::pair<std::string, std::string>> variables;
  while (!environ.empty()) {
    const std::size_t end = environ.find('\0');
    const std::string_view entry = environ.substr(0, end);
    environ.remove_prefix(end == std::string_view::npos ? environ.size() : end + 1);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    constexpr std::size_t kLongestName = 64;
    const bool plain = !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, [](char c) {
      return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!plain || !is_allowed_variable(name)) continue;
    const auto is = [&](const char* other) { return name == other; };
    if (std::ranges::any_of(kSwitches, is) && !is_switch(value)) continue;
    variables.emplace_back(name, shown_value(value));
  }
  std::ranges::sort(variables);
  return variables;
}

}  // namespace culprit::record
