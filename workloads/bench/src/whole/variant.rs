//! Variants of running a program: untraced, or with a codec and a policy.

use anyhow::Context;
use warptrace_host::{MemorySize, Policy, RecordingSpec};

use crate::codecs::{CODECS, Codec, UNTRACED, UNTRACED_LIMITED};
use crate::runs;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Variant {
    /// Name in tables and on the command line: `untraced`, `CODEC`, or `CODEC / POLICY`.
    pub(super) name: String,
    /// Codec and policy; `None`: untraced.
    traced: Option<(&'static Codec, Policy)>,
}

impl Variant {
    pub(super) fn named(name: &str) -> anyhow::Result<Self> {
        if name == UNTRACED || name == UNTRACED_LIMITED {
            return Ok(Self { name: name.to_owned(), traced: None });
        }
        let (codec, policy) =
            name.split_once(" / ").map_or((name, None), |(codec, policy)| (codec, Some(policy)));
        let known = |names: Vec<&str>| names.join("`, `");
        let codec = CODECS.iter().find(|known| known.name == codec).with_context(|| {
            let names = known(CODECS.iter().map(|codec| codec.name).collect());
            format!("there is no codec `{codec}`; there are `{UNTRACED}` and the codecs `{names}`")
        })?;
        let policy = match policy {
            None => codec.recording.policy,
            Some(policy) => policy.parse().map_err(anyhow::Error::msg)?,
        };
        Ok(Self { name: name.to_owned(), traced: Some((codec, policy)) })
    }

    /// Returns the untraced variant, and then each codec with each policy.
    pub(super) fn with_policies(codecs: &[&str]) -> anyhow::Result<Vec<Self>> {
        let names = Policy::ALL
            .into_iter()
            .flat_map(|policy| codecs.iter().map(move |codec| format!("{codec} / {policy}")));
        std::iter::once(UNTRACED.to_owned()).chain(names).map(|name| Self::named(&name)).collect()
    }

    pub(super) fn is_untraced(&self) -> bool {
        self.traced.is_none()
    }

    /// Returns true if nothing is recorded and kernels have the registers of traced ones.
    pub(super) fn is_limited(&self) -> bool {
        self.name == UNTRACED_LIMITED
    }

    /// Returns the options of the recording; `None` if untraced. Without `memory`, the session chooses.
    pub(super) fn options(&self, memory: Option<MemorySize>) -> Option<RecordingSpec> {
        let (codec, policy) = self.traced?;
        let mut options = runs::session_options(codec, false, u64::MAX);
        options.policy = policy;
        options.memory = memory;
        Some(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_what_its_name_says() {
        for (name, limited) in [(UNTRACED, false), (UNTRACED_LIMITED, true)] {
            let variant = Variant::named(name).unwrap();
            assert!(variant.is_untraced() && variant.is_limited() == limited, "{name}");
        }
        assert_eq!(Variant::named(UNTRACED).unwrap().options(None).map(|options| options.policy), None);
        for (name, policy) in
            [("raw", Policy::Stop), ("raw / ring", Policy::Ring), ("predict, ring", Policy::Ring)]
        {
            let options = Variant::named(name).unwrap().options(Some(MemorySize(77))).unwrap();
            assert_eq!((options.policy, options.memory), (policy, Some(MemorySize(77))), "{name}");
        }
        assert_eq!(Variant::named("predict").unwrap().options(None).unwrap().memory, None);
        let names: Vec<String> = Variant::with_policies(&["raw", "ecl"])
            .unwrap()
            .into_iter()
            .map(|variant| variant.name)
            .collect();
        let expected =
            ["raw / stop", "ecl / stop", "raw / ring", "ecl / ring", "raw / stream", "ecl / stream"];
        assert_eq!((names[0].as_str(), &names[1..]), (UNTRACED, &expected.map(String::from)[..]));
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let error = Variant::named("zip / stop").unwrap_err().to_string();
        assert!(
            error.starts_with("there is no codec `zip`; there are `untraced` and the codecs `raw`, `ecl`"),
            "{error}"
        );
        let error = Variant::named("raw / stall").unwrap_err().to_string();
        assert_eq!(error, "there is no policy `stall`; the policies are `stop`, `ring`, `stream`");
    }
}
