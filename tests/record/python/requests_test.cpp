// What a call tells of a request becomes times that lie within each other.
#include "record/python/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace culprit::record::python {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::array<std::string_view, 5> kNames = {"queued", "scheduled", "first", "last", "tokens"};
using Numbers = std::array<std::optional<std::int64_t>, 5>;
constexpr Numbers kNumbers = {1'000, 1'200, 2'000, 6'000, 5};
constexpr Ns kTold = 10'000;

std::vector<RequestSpan> spans_of(const std::string& text) {
  auto spec = parse_function("m:f(queued=ns(a), scheduled=ns(b), first=ns(c), last=ns(d), tokens=e) requests " + text);
  return spec ? spec->request : std::vector<RequestSpan>{};
}

std::vector<std::string> times(const std::string& text, const Numbers& numbers = kNumbers) {
  const std::vector<RequestSpan> spans = spans_of(text);
  std::vector<std::string> shown;
  for (const RequestTime& time : request_times(spans, kNames, numbers, kTold))
    shown.push_back(std::string(time.name) + " " + std::to_string(time.begin) + " " + std::to_string(time.end));
  return shown;
}

TEST(RequestTimes, LieWithinEachOther) {
  EXPECT_THAT(times("decode=first..last,queue=queued..scheduled,prefill=scheduled..first,request=queued..last"),
              ElementsAre("request 1000 6000", "queue 1000 1200", "prefill 1200 2000", "decode 2000 6000"));
}

TEST(RequestTimes, ATokenIsOneOfThePartsBetweenThem) {
  EXPECT_THAT(times("output_token=first..last/tokens"), ElementsAre("output_token 2000 3000"));
  Numbers one = kNumbers;
  one[4] = 1;
  EXPECT_THAT(times("output_token=first..last/tokens", one), IsEmpty());
}

TEST(RequestTimes, EndsMayBeDifferencesOrNow) {
  EXPECT_THAT(times("request=first-queued..now"), ElementsAre("request 1000 10000"));
  EXPECT_THAT(times("request=queued-first..now"), IsEmpty()) << "before the clock began";
}

TEST(RequestTimes, WhatIsMissingOrImpossibleIsLeftOut) {
  Numbers numbers = kNumbers;
  numbers[1] = std::nullopt;
  EXPECT_THAT(times("queue=queued..scheduled,decode=first..last", numbers), ElementsAre("decode 2000 6000"));
  numbers[1] = 0;
  EXPECT_THAT(times("queue=queued..scheduled", numbers), IsEmpty());
  numbers[1] = 500;
  EXPECT_THAT(times("queue=queued..scheduled", numbers), IsEmpty());
  numbers[1] = std::int64_t{1} << 62;
  EXPECT_THAT(times("queue=queued..scheduled", numbers), IsEmpty());
}

TEST(RequestTimes, OneThatReachesBeyondAnotherKeepsItsLength) {
  EXPECT_THAT(times("first_token=queued..first,queue=scheduled..last"),
              ElementsAre("first_token 1000 2000", "queue 1200 6000"));
}

TEST(RequestSpec, SpeaksOfNumbersThatAreTaken) {
  EXPECT_EQ(spans_of("queue=queued..scheduled").size(), 1u);
  for (const char* wrong : {"", "queue", "queue=queued", "queue=queued..", "queue=..queued", "=queued..first",
                            "queue=queued..other", "queue=queued..first/other", "queue=queued-other..first",
                            "a b=queued..first", "queue=queued..first,", "..=queued"})
    EXPECT_THAT(spans_of(wrong), IsEmpty()) << wrong;
  EXPECT_FALSE(parse_function("m:f requests queue=queued..first"));
  EXPECT_TRUE(parse_function("m:f(a=ns(b)) requests whole=a..now"));
}

}  // namespace
}  // namespace culprit::record::python
