//! Lists of folders.

use object_store::list::PaginatedListOptions;

use crate::client::{StorePlace, runtime};
use crate::error::StoreError;

const MOST: usize = 100_000;

/// Maximum number of pages, because a server might send empty pages forever.
const PAGES: usize = 1000;

pub(crate) fn list(folder: &str) -> Result<Vec<String>, StoreError> {
    let place = StorePlace::new(folder)?;
    let Some(store) = &place.listed else {
        let what = "a web server lists nothing; name each trace";
        return Err(StoreError::Url { url: place.shown, what });
    };
    let start = folder.len() - place.bucket.len() - 1 - place.key.len();
    let bucket = folder.get(..start + place.bucket.len()).unwrap_or_default();
    let prefix = (!place.key.is_empty()).then_some(place.key.as_str());
    let mut found = Vec::new();
    let mut page_token = None;
    for _ in 0..PAGES {
        let delimiter = Some("/".into());
        let options = PaginatedListOptions { delimiter, page_token, ..PaginatedListOptions::default() };
        let listing = place.in_time(store.list_paginated(prefix, options));
        let page = runtime(&place.shown)?.block_on(listing)?;
        found.extend(page.result.objects.iter().map(|object| format!("{bucket}/{}", object.location)));
        page_token = page.page_token;
        if found.len() > MOST {
            break;
        }
        if page_token.is_none() {
            return Ok(found);
        }
    }
    Err(StoreError::TooMany { url: place.shown, limit: MOST })
}
