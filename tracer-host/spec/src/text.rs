//! Serde serialization of values by their text form.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|error| D::Error::custom(format!("it is `{text}`: {error}")))
}

/// The same for optional values.
pub(crate) mod option {
    use super::*;

    pub(crate) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(deserializer)?;
        let read =
            |text: String| text.parse().map_err(|error| D::Error::custom(format!("it is `{text}`: {error}")));
        text.map(read).transpose()
    }
}

/// Durations, as a number of seconds.
pub(crate) mod seconds {
    use std::time::Duration;

    use super::*;

    #[cfg(feature = "clap")]
    pub(crate) fn parse(text: &str) -> Result<Duration, String> {
        text.parse().ok().and_then(duration_of).ok_or_else(|| NEEDED.to_owned())
    }

    const NEEDED: &str = "a number of seconds is needed, 0 or more";

    fn duration_of(seconds: f64) -> Option<Duration> {
        Duration::try_from_secs_f64(seconds).ok()
    }

    pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(value.as_secs_f64())
    }

    #[cfg(feature = "run")]
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        duration_of(seconds).ok_or_else(|| D::Error::custom(format!("it is {seconds}: {NEEDED}")))
    }

    pub(crate) mod option {
        use super::*;

        pub(crate) fn serialize<S: Serializer>(
            value: &Option<Duration>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match value {
                Some(value) => super::serialize(value, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Duration>, D::Error> {
            let seconds = Option::<f64>::deserialize(deserializer)?;
            let read = |seconds| {
                duration_of(seconds).ok_or_else(|| D::Error::custom(format!("it is {seconds}: {NEEDED}")))
            };
            seconds.map(read).transpose()
        }
    }
}

#[cfg(feature = "clap")]
pub(crate) fn property(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or("write a name and a value, as in input=road.egr")?;
    if warptrace_format::file::is_recorders(name) {
        return Err(crate::SpecError::RecordersProperty { name: name.to_owned() }.to_string());
    }
    Ok((name.to_owned(), value.to_owned()))
}
