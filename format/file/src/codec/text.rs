//! Text form of codecs.

use core::fmt;
use core::str::FromStr;
use std::borrow::ToOwned;
use std::string::String;

use super::{CodecSpec, EclParams, ParamError, PredictParams};

/// A text that is not a codec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecTextError {
    /// The name is unknown, or the parameters do not match the codec.
    #[error(
        "`{text}` is no codec: write raw, ecl or predict; on the simulator with parameters, as in ecl:9,2,10 or predict:6"
    )]
    Form {
        /// The text.
        text: String,
    },
    /// A parameter is out of range.
    #[error(transparent)]
    Param(#[from] ParamError),
}

impl fmt::Display for CodecSpec {
    /// Writes the name, and the parameters if they are not the defaults.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Ecl(params) if params != EclParams::DEFAULT => {
                let EclParams { hash_bits, shift, window_bits } = params;
                write!(out, "ecl:{hash_bits},{shift},{window_bits}")
            }
            Self::Predict(params) if params != PredictParams::DEFAULT => {
                write!(out, "predict:{}", params.slot_bits)
            }
            codec => out.pad(codec.name()),
        }
    }
}

impl FromStr for CodecSpec {
    type Err = CodecTextError;

    /// Parses a name, optionally followed by a colon and parameters.
    ///
    /// ```
    /// use warptrace_format::codec::{CodecSpec, PredictParams};
    /// assert_eq!("predict".parse(), Ok(CodecSpec::Predict(PredictParams::DEFAULT)));
    /// let codec: CodecSpec = "ecl:9,2,10".parse()?;
    /// assert_eq!(codec.to_string(), "ecl:9,2,10");
    /// assert!("predict:99".parse::<CodecSpec>().is_err() && "zip".parse::<CodecSpec>().is_err());
    /// # Ok::<(), warptrace_format::codec::CodecTextError>(())
    /// ```
    fn from_str(text: &str) -> Result<Self, CodecTextError> {
        let form = || CodecTextError::Form { text: text.to_owned() };
        let (name, parameters) = match text.split_once(':') {
            Some((name, parameters)) => (name, Some(parameters)),
            None => (text, None),
        };
        let number = |word: &str| word.parse::<u8>().map_err(|_| form());
        match (name, parameters) {
            ("raw", None) => Ok(Self::Raw),
            ("ecl", None) => Ok(Self::Ecl(EclParams::DEFAULT)),
            ("predict", None) => Ok(Self::Predict(PredictParams::DEFAULT)),
            ("ecl", Some(parameters)) => {
                let mut words = parameters.split(',');
                let mut next = || number(words.next().unwrap_or_default());
                let params = [next()?, next()?, next()?];
                if words.next().is_some() {
                    return Err(form());
                }
                let [hash_bits, shift, window_bits] = params;
                Ok(Self::Ecl(EclParams::new(hash_bits, shift, window_bits)?))
            }
            ("predict", Some(slot_bits)) => Ok(Self::Predict(PredictParams::new(number(slot_bits)?)?)),
            _ => Err(form()),
        }
    }
}
