//! Enumerations with a name for each value, used in files, options and output.

/// Declares an enumeration with named values and generates `ALL`, `name`, `from_name` and `Display`.
///
/// ```
/// warptrace_format::named_enum! {
///     /// A side of a branch.
///     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
///     pub enum Side {
///         /// The condition holds.
///         Then = "then",
///         /// It does not.
///         Else = "else",
///     }
/// }
/// assert_eq!((Side::Then.name(), Side::from_name("else"), Side::ALL.len()), ("then", Some(Side::Else), 2));
/// ```
#[macro_export]
macro_rules! named_enum {
    ($(#[$meta:meta])* pub enum $type:ident { $($(#[$of_value:meta])* $value:ident = $name:literal,)* }) => {
        $(#[$meta])*
        pub enum $type {
            $($(#[$of_value])* $value,)*
        }

        impl $type {
            /// All values, in the order of declaration.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$value),*];

            /// Returns the name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }

            /// Returns the value with this name, or `None`.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                out.pad(self.name())
            }
        }
    };
}
