#include "record/environment/allow_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace culprit::record {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

TEST(AllowList, SettingsOfFrameworksAreAllowed) {
  for (const char* name : {"NCCL_DEBUG", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "TORCH_NCCL_BLOCKING_WAIT",
                           "PYTORCH_CUDA_ALLOC_CONF", "VLLM_ATTENTION_BACKEND", "SGLANG_X", "MKL_NUM_THREADS"})
    EXPECT_TRUE(is_allowed_variable(name)) << name;
}

TEST(AllowList, EverythingElseIsNot) {
  for (const char* name : {"PATH", "HOME", "USER", "AWS_ACCESS_KEY_ID", "PYTHONPATH", "LD_PRELOAD", "XNCCL_DEBUG",
                           "nccl_debug", "HF_HOME", "MASTER_ADDR", "", "NCCL"})
    EXPECT_FALSE(is_allowed_variable(name)) << name;
}

TEST(AllowList, NamesOfSecretsAreRefusedDespiteTheirPrefix) {
  for (const char* name : {"VLLM_API_KEY", "SGLANG_ADMIN_TOKEN", "TORCH_HUB_SECRET", "NCCL_DB_PASSWORD", "CUDA_PASSWD",
                           "VLLM_AUTH", "OMP_Credentials", "TRITON_PRIVATE", "SGLANG_SESSION_COOKIE", "VLLM_DB_PW",
                           "VLLM_DBPW", "TORCH_PWD", "VLLM_WEBHOOK_URL", "SENTRY_DSN", "TORCH_DSN"})
    EXPECT_FALSE(is_allowed_variable(name)) << name;
}

TEST(AllowList, ValuesThatLookLikeSecretsAreHidden) {
  for (const char* value : {"hf_aBcDeFgHiJkL", "sk-proj-1234", "ghp_x", "AKIAIOSFODNN7", "eyJhbGciOi", "a,hf_secret",
                            "http://user:word@host/", "Bearer abc", "d41d8cd98f00b204e9800998ecf8427e",
                            "x=0123456789abcdef0123", "my-password-1", "wJalrXUtnFEMI7K7MDENGbPxRfiCY"})
    EXPECT_THAT(shown_value(value), HasSubstr("hidden")) << value;
}

TEST(AllowList, UrlsEndWithTheirHost) {
  EXPECT_EQ(shown_value("http://10.0.0.1:8000/tenant/a?x=1"), "http://10.0.0.1:8000/<hidden>");
  EXPECT_EQ(shown_value("s3://bucket/models/private, http://b"), "s3://bucket/<hidden>, http://b");
  EXPECT_EQ(shown_value("http://host?user=me#part"), "http://host/<hidden>");
  EXPECT_EQ(shown_value("tcp://host:29500/"), "tcp://host:29500");
  EXPECT_THAT(shown_value("http://host/" + std::string(500, 'p') + "/1"), Not(HasSubstr("ppp")));
}

TEST(AllowList, OrdinaryValuesStay) {
  for (const char* value : {"", "1", "0,1,2,3", "GPU-8f2b3c4d-1a2b-3c4d-5e6f-a1b2c3d4e5f6", "INFO", "eth0,eth1",
                            "expandable_segments:True,max_split_size_mb:128", "/usr/local/cuda-12.4", "FLASH_ATTN",
                            "^docker0,lo", "http://proxy:8080"})
    EXPECT_EQ(shown_value(value), value);
}

TEST(AllowList, LongValuesAreCutAndTheirDigestTellsThemApart) {
  const std::string a = std::string(300, 'a') + "/1";
  const std::string b = std::string(300, 'a') + "/2";
  EXPECT_LT(shown_value(a).size(), 150u);
  EXPECT_NE(shown_value(a), shown_value(b));
}

TEST(AllowList, OnlySwitchesOfTheHubAreTaken) {
  using namespace std::string_literals;
  EXPECT_THAT(allowed_variables("HF_HUB_OFFLINE=1\0TRANSFORMERS_OFFLINE=hf_secretmarker\0RANK=3\0WORLD_SIZE=a b\0"s
                                "TOKENIZERS_PARALLELISM=False"s),
              ElementsAre(Pair("HF_HUB_OFFLINE", "1"), Pair("RANK", "3"), Pair("TOKENIZERS_PARALLELISM", "False")));
}

TEST(AllowList, WhatTellsAllocatorsAndRuntimesHowToWorkIsTaken) {
  using namespace std::string_literals;
  EXPECT_THAT(allowed_variables("PYTHONMALLOC=debug\0GLIBC_TUNABLES=glibc.malloc.tcache_count=0\0MALLOC_ARENA_MAX=2\0"
                                "GOMAXPROCS=4\0GOGC=off\0PYTHONDEVMODE=anything else\0"s),
              ElementsAre(Pair("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"), Pair("GOGC", "off"),
                          Pair("GOMAXPROCS", "4"), Pair("MALLOC_ARENA_MAX", "2"), Pair("PYTHONMALLOC", "debug")));
}

TEST(AllowList, HostileTextIsLeftOut) {
  using namespace std::string_literals;
  EXPECT_THAT(allowed_variables("\0\0=x\0NCCL_A\0NCCL_B=\0NCCL_\x1b[2J=1\0NCCL_C=1=2\0"s + "NCCL_" +
                                std::string(99, 'X') + "=1"),
              ElementsAre(Pair("NCCL_B", ""), Pair("NCCL_C", "1=2")));
}

std::vector<std::pair<std::string, std::string>> options_of(std::initializer_list<std::string> arguments) {
  std::string cmdline;
  for (const std::string& argument : arguments) cmdline += argument + '\0';
  return allowed_options(cmdline);
}

TEST(Options, NumbersSwitchesLevelsAndTypesAreShown) {
  EXPECT_THAT(
      options_of({"/usr/bin/python3", "vllm", "serve", "m", "--max-num-seqs", "16", "--dtype=bfloat16",
                  "--enforce-eager", "--gpu_memory_utilization", "0.9", "--log-level", "debug", "--seed", "-1",
                  "--trust", "True"}),
      ElementsAre(Pair("dtype", "bfloat16"), Pair("enforce-eager", "set"), Pair("gpu-memory-utilization", "0.9"),
                  Pair("log-level", "debug"), Pair("max-num-seqs", "16"), Pair("seed", "-1"), Pair("trust", "True")));
}

TEST(Options, NoOtherTextIsShown) {
  EXPECT_THAT(
      options_of({"p", "--model", "/home/me/secret-model", "--prompt=tell me", "--api-key", "1234", "--password=5678",
                  "--auth_token", "true", "-p", "3", "--url", "http://user:word@host/", "--number", "123456789012345"}),
      ElementsAre());
}

TEST(Options, OfAProgramThatIsStartedByItAreNotIts) {
  EXPECT_THAT(options_of({"culprit", "--rate", "5", "--", "other", "--seqs", "7"}), ElementsAre(Pair("rate", "5")));
}

TEST(Options, TheLastOfANameCounts) {
  EXPECT_THAT(options_of({"p", "--n", "1", "--n=2"}), ElementsAre(Pair("n", "2")));
}

TEST(Options, NoArgumentsAreNone) {
  EXPECT_THAT(allowed_options(""), ElementsAre());
  EXPECT_THAT(allowed_options(std::string_view("p\0--", 4)), ElementsAre());
  EXPECT_THAT(allowed_options("p"), ElementsAre());
}

}  // namespace
}  // namespace culprit::record
