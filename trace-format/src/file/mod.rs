//! The bytes of a `.wtrc` file.
