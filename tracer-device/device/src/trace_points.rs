//! Declaring a kernel's trace points.

/// A declared trace point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracePoint {
    /// The id that [`trace_loc`](crate::trace_loc) is given.
    pub id: u16,
    /// Its name.
    pub name: &'static str,
    /// What the decision is, for people.
    pub what: &'static str,
}

/// A kernel's trace points together with its source, from which lines and columns are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracePoints {
    /// Name of the module that holds the constants (`at` in `trace_loc(at::ENTER)`).
    pub module: &'static str,
    /// Source file, as the compiler names it.
    pub file: &'static str,
    /// The file's text.
    pub source: &'static str,
    /// The points, in order of declaration.
    pub points: &'static [TracePoint],
}

impl TracePoints {
    /// Line and column (both from 1) of the one place where `trace_loc(module::NAME)` or
    /// `trace_loop(module::NAME)` stands.
    ///
    /// `None` if there is none or more than one: then the id names no position. Comments to the end of a line are
    /// not looked at.
    pub fn position(&self, point: &TracePoint) -> Option<(u32, u32)> {
        let mut found = None;
        for (index, line) in self.source.lines().enumerate() {
            let line = line.split_once("//").map_or(line, |(code, _)| code);
            for call in ["trace_loc(", "trace_loop("] {
                for (column, _) in line.match_indices(call) {
                    let argument = &line[column + call.len()..];
                    let is_point = argument
                        .strip_prefix(self.module)
                        .and_then(|rest| rest.strip_prefix("::"))
                        .and_then(|rest| rest.strip_prefix(point.name))
                        .is_some_and(|rest| rest.starts_with(')'));
                    if is_point && found.replace((index as u32 + 1, column as u32 + 1)).is_some() {
                        return None;
                    }
                }
            }
        }
        found
    }
}

/// Declares trace points, each a unit type that is a [`Location`](crate::Location), and their table for the
/// host.
///
/// ```
/// warptrace_device::trace_points! {
///     /// Decisions of the kernel.
///     pub mod at in "lib.rs" {
///         ENTER = 1: "thread entered",
///         LOOP = 2: "one more round",
///     }
/// }
/// assert_eq!(at::LOOP.id(), 2);
/// assert_eq!(at::POINTS.points[0].name, "ENTER");
/// ```
/// The string after `in` is the path of the source file that uses them, relative to the invoking file.
#[macro_export]
macro_rules! trace_points {
    ($(#[$doc:meta])* $vis:vis mod $module:ident in $source:literal {
        $($name:ident = $id:literal : $what:literal),+ $(,)?
    }) => {
        $(#[$doc])*
        $vis mod $module {
            $(
                #[doc = $what]
                #[derive(Clone, Copy, Debug, PartialEq, Eq)]
                #[expect(non_camel_case_types, reason = "it is written as the constants are that it stands for")]
                #[allow(clippy::upper_case_acronyms, reason = "as above")]
                pub struct $name;

                impl $crate::Location for $name {
                    const ID: u16 = $id;
                }

                impl $name {
                    /// The id that stands in the trace.
                    pub const fn id(self) -> u16 {
                        $id
                    }
                }
            )+

            // The compiler refuses an id that is given twice, and points at it.
            #[allow(non_camel_case_types, clippy::upper_case_acronyms, dead_code, reason = "only looked at by the compiler")]
            #[repr(u16)]
            enum OneIdEach {
                $($name = $id),+
            }

            /// The table of these points.
            #[cfg(not(target_arch = "nvptx64"))]
            pub const POINTS: $crate::TracePoints = $crate::TracePoints {
                module: stringify!($module),
                file: file!(),
                source: include_str!($source),
                points: &[$($crate::TracePoint { id: $id, name: stringify!($name), what: $what }),+],
            };
        }
    };
}
