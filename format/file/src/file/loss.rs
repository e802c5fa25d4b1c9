//! Why events are not in a trace.

use serde::{Deserialize, Serialize};

use super::metadata::RecordedPolicy;

crate::named_enum! {
    /// Why events of a warp are not in a trace.
    ///
    /// The file has no field for it. It follows from a warp's account, from the policy of the recording, and from
    /// how the launch ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum LossReason {
        /// There was no memory for another segment or chunk.
        Memory = "memory",
        /// Lanes waited for memory longer than they were to, and went on.
        Timeout = "timeout",
        /// The warp's later events were written over its earlier ones.
        Overwritten = "overwritten",
        /// The kernel failed or was interrupted before the warp had finished. How many events are missing is not
        /// known.
        Died = "died",
        /// The warp was outside of the recording's window. That is no loss, and nothing is counted.
        NotChosen = "not_chosen",
        /// The file does not tell: it has no account of the warp, or a policy that this build does not know.
        Unknown = "unknown",
    }
}

/// Where among a warp's recorded events the missing ones would stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossPosition {
    /// Before the first.
    Start,
    /// Anywhere; in one stretch or in many.
    Within,
    /// Behind the last.
    End,
}

impl LossReason {
    /// The reason for which a recording with this policy counts events as lost.
    pub const fn of_policy(policy: &RecordedPolicy) -> Self {
        match policy {
            RecordedPolicy::Stop => Self::Memory,
            RecordedPolicy::Stream => Self::Timeout,
            RecordedPolicy::Ring => Self::Overwritten,
            RecordedPolicy::Other(_) => Self::Unknown,
        }
    }

    /// Says what happened, in words that follow a colon.
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

    /// Says how to lose less next time, if that is in the user's hand.
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

    /// Says what happened and, after a semicolon, what to do about it.
    pub fn describe_with_remedy(self) -> String {
        let remedy = self.remedy().map_or_else(String::new, |remedy| format!("; {remedy}"));
        format!("{}{remedy}", self.describe())
    }

    /// Where among the warp's events the missing ones would stand. With a reason that is not known, events
    /// that were counted as lost may be missing anywhere.
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
