//! Reasons for lost events.

use serde::{Deserialize, Serialize};

use super::metadata::RecordedPolicy;

crate::named_enum! {
    /// Reason why events of a warp are not in a trace, from its account, the policy and the launch's end.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum LossReason {
        /// No memory was left for another segment or chunk.
        Memory = "memory",
        /// Lanes waited for memory up to their limit, and continued.
        Timeout = "timeout",
        /// Later events of the warp overwrote its earlier ones.
        Overwritten = "overwritten",
        /// The kernel did not complete before the warp finished. The number of lost events is unknown.
        Died = "died",
        /// The warp is outside the recording's window. This is not a loss, and nothing is counted.
        NotChosen = "not_chosen",
        /// The file has no account of the warp, or its policy is unknown to this build.
        Unknown = "unknown",
    }
}

/// Position of the missing events among a warp's recorded events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossPosition {
    /// Before the first event.
    Start,
    /// Anywhere, in one or more places.
    Within,
    /// After the last event.
    End,
}

impl LossReason {
    /// Returns the reason for which a recording with this policy loses events.
    pub const fn of_policy(policy: &RecordedPolicy) -> Self {
        match policy {
            RecordedPolicy::Stop => Self::Memory,
            RecordedPolicy::Stream => Self::Timeout,
            RecordedPolicy::Ring => Self::Overwritten,
            RecordedPolicy::Other(_) => Self::Unknown,
        }
    }

    /// Describes the reason, in words that follow a colon.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Memory => "the memory of logs and chunks was full",
            Self::Timeout => "lanes waited too long for memory",
            Self::Overwritten => "later events were written over them",
            Self::Died => "the kernel did not run to its end",
            Self::NotChosen => "the recording's window does not hold the warp",
            Self::Unknown => "the file does not say why",
        }
    }

    /// Returns advice for losing fewer events, if the user can influence it.
    pub const fn remedy(self) -> Option<&'static str> {
        match self {
            Self::Memory => Some("give more memory (`--memory`), or record with `--policy stream`"),
            Self::Timeout => {
                Some("let lanes wait longer (`--stall-limit`), or give more memory (`--memory`)")
            }
            Self::Overwritten => Some("give more memory (`--memory`) to keep more"),
            Self::Died | Self::NotChosen | Self::Unknown => None,
        }
    }

    /// Describes the reason and, after a semicolon, the remedy.
    pub fn describe_with_remedy(self) -> String {
        let remedy = self.remedy().map_or_else(String::new, |remedy| format!("; {remedy}"));
        format!("{}{remedy}", self.describe())
    }

    /// Returns the position of the missing events. For an unknown reason they may be anywhere.
    pub const fn position(self) -> LossPosition {
        match self {
            Self::Memory | Self::Died => LossPosition::End,
            Self::Overwritten => LossPosition::Start,
            Self::Timeout | Self::NotChosen | Self::Unknown => LossPosition::Within,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_one_name_and_follows_from_the_policy() {
        for reason in LossReason::ALL {
            assert_eq!(LossReason::ALL.iter().filter(|other| other.name() == reason.name()).count(), 1);
        }
        let of = ["stop", "stream", "ring", "later"];
        let of = of.map(|name| LossReason::of_policy(&RecordedPolicy::from(name.to_owned())));
        assert_eq!(
            of,
            [LossReason::Memory, LossReason::Timeout, LossReason::Overwritten, LossReason::Unknown]
        );
    }
}
