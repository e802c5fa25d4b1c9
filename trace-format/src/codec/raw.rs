//! `raw`: each event as its five CUT bytes, nothing else.
