//! URLs of objects.

use warptrace_format::shown;

/// Scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `s3://bucket/key`: S3 or a compatible store.
    S3,
    /// `gs://bucket/key`: Google Cloud Storage.
    Gs,
    /// `https://…`.
    Https,
    /// `http://…`.
    Http,
}

impl Scheme {
    /// Returns true for stores with buckets, which can be listed.
    pub const fn has_buckets(self) -> bool {
        matches!(self, Self::S3 | Self::Gs)
    }
}

const SCHEMES: [(&str, Scheme); 4] =
    [("s3://", Scheme::S3), ("gs://", Scheme::Gs), ("https://", Scheme::Https), ("http://", Scheme::Http)];

pub(crate) fn split(text: &str) -> Option<(Scheme, &str)> {
    SCHEMES.iter().find_map(|(start, scheme)| {
        let head = text.get(..start.len())?;
        head.eq_ignore_ascii_case(start).then(|| (*scheme, &text[start.len()..]))
    })
}

/// Returns the scheme of a URL that can be opened; `None` for other texts.
pub fn scheme(text: &str) -> Option<Scheme> {
    Some(split(text)?.0)
}

/// Returns true if a text is a URL, not the name of a file.
pub fn is_url(text: &str) -> bool {
    scheme(text).is_some()
}

/// Returns a URL for display: on one line, without user name and password, and for web servers without the
/// query, because a signature in it would let anyone read the object. Returns other texts escaped.
pub fn shown_url(text: &str) -> String {
    let Some((scheme, rest)) = split(text) else { return shown(text).into_owned() };
    let start = &text[..text.len() - rest.len()];
    let query = if scheme.has_buckets() { None } else { rest.find(['?', '#']) };
    let (rest, query) = query.map_or((rest, ""), |at| (&rest[..at], "?..."));
    let host_end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..host_end].rfind('@').map_or(0, |at| at + 1);
    shown(&format!("{start}{}{query}", &rest[host..])).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_no_urls() {
        for text in
            ["", "s3:/b/k", "s3", "./s3://b/k", "ftp://h/k", "file:///k", "é://k", "http:/h", "a.wtrc"]
        {
            assert_eq!(scheme(text), None, "{text}");
        }
        assert_eq!(scheme("s3://b/k"), Some(Scheme::S3));
        assert_eq!(scheme("GS://b/k"), Some(Scheme::Gs));
        assert_eq!(scheme("https://h"), Some(Scheme::Https));
        assert_eq!(scheme("HTTP://h/"), Some(Scheme::Http));
    }

    #[test]
    fn what_is_shown_has_no_secret() {
        assert_eq!(shown_url("https://me:word@h:1/a@b?X-Signature=1#2"), "https://h:1/a@b?...");
        assert_eq!(shown_url("https://h/a#word"), "https://h/a?...");
        assert_eq!(shown_url("s3://b/what?.wtrc"), "s3://b/what?.wtrc");
        assert_eq!(shown_url("what?.wtrc"), "what?.wtrc");
        assert_eq!(shown_url("http://h/\u{1b}[2J"), shown("http://h/\u{1b}[2J"));
    }
}
