// How Boost.Math answers where there is no answer. Only for files that compile against it anyway.
#pragma once

#include <boost/math/policies/policy.hpp>

namespace culprit::stats {

// Out-of-range arguments give NaN instead of an exception.
using Quiet =
    boost::math::policies::policy<boost::math::policies::domain_error<boost::math::policies::ignore_error>,
                                  boost::math::policies::pole_error<boost::math::policies::ignore_error>,
                                  boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
                                  boost::math::policies::underflow_error<boost::math::policies::ignore_error>,
                                  boost::math::policies::evaluation_error<boost::math::policies::ignore_error>,
                                  boost::math::policies::promote_double<false>>;

}  // namespace culprit::stats
