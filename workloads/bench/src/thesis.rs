//! ECL-Tracer's published results, for comparison: Azimi Moghaddam, "ECL-Tracer" (MS thesis, Texas State
//! University, 2017), Table A.1 and chapter 5, on a Titan X. The other compressors got the whole raw trace.

/// Ratios of one input: uncompressed bytes, at five per event, over compressed bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratios {
    pub(crate) name: &'static str,
    pub(crate) ecl: f64,
    pub(crate) bzip2: f64,
    pub(crate) gzip: f64,
}

const fn ratios(name: &'static str, ecl: f64, bzip2: f64, gzip: f64) -> Ratios {
    Ratios { name, ecl, bzip2, gzip }
}

pub(crate) const RATIOS: [Ratios; 11] = [
    ratios("fractal 2048, depth 1024", 6.31, 39.3, 47.5),
    ratios("fractal 2048, depth 2048", 6.17, 40.2, 48.5),
    ratios("fractal 2048, depth 4096", 6.13, 40.6, 48.9),
    ratios("MIS, amazon0312", 1.86, 4.99, 5.23),
    ratios("MIS, internet", 1.53, 4.20, 4.23),
    ratios("MIS, USA-road-d.NY", 1.42, 3.89, 4.05),
    ratios("N-body, 50,000 bodies", 384.5, 369_769.0, 713.0),
    ratios("N-body, 60,000 bodies", 385.6, 459_907.0, 716.0),
    ratios("MST, rmat12", 1.76, 5.26, 6.12),
    ratios("DMR, 250k.2", 1.58, 4.16, 4.86),
    ratios("DMR, r1M", 2.29, 7.70, 8.33),
];

/// The thesis's programs by their names here. Means over programs use these.
pub(crate) const PROGRAMS: [&str; 5] = ["fractal", "nbody", "mis", "mst", "dmr"];

/// Total time of the traced program (kernel, copy, disk) over the untraced one; lowest and highest.
pub(crate) const OVERHEAD: (f64, f64) = (1.03, 5.27);

/// bzip2's time over ECL-Tracer's total time, for the regular programs.
pub(crate) const BZIP2_TIME_REGULAR: f64 = 3.4;

pub(crate) fn find(name: &str) -> Option<&'static Ratios> {
    RATIOS.iter().find(|ratios| ratios.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::{self, Selection};

    #[test]
    fn every_full_size_row_is_measured() {
        let all = Selection { quick: false, inputs: None, grid: None, programs: &[] };
        let cases = programs::measured(&all).unwrap();
        for ratios in &RATIOS {
            assert_eq!(
                cases.iter().filter(|case| case.thesis == Some(ratios.name)).count(),
                1,
                "{}",
                ratios.name
            );
        }
        assert!(cases.iter().all(|case| case.thesis.is_none_or(|name| find(name).is_some())));
        for program in PROGRAMS {
            assert!(cases.iter().any(|case| case.program == program && case.thesis.is_some()), "{program}");
        }
        assert!(cases.iter().all(|case| case.thesis.is_none() || PROGRAMS.contains(&case.program)));
    }
}
