//! Numbers of the figures: the thesis's quantities for this project's programs and inputs, with every codec,
//! next to the thesis's numbers. The overviews show each program once.

use plotters::style::RGBColor;

use super::chart::{Band, Chart, Fill, Series, Value};
use crate::bench::{BenchRow, COMPRESSORS, Measurements, Program, Subject, programs};
use crate::codecs::{MAIN, RAW, UNTRACED};
use crate::thesis::{self, Ratios};

/// Distinct with colour blindness: Okabe and Ito, "Color Universal Design" (2008). Codecs and compressors
/// appear next to each other and have different colours.
const CODEC_COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(86, 180, 233), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];
const COMPRESSOR_COLOURS: [RGBColor; 4] =
    [RGBColor(230, 159, 0), RGBColor(240, 228, 66), RGBColor(213, 94, 0), RGBColor(96, 64, 32)];
const RAW_COLOUR: RGBColor = RGBColor(120, 120, 120);

const OVER_UNTRACED: &str = "time over the untraced program's";

fn whole(row: &BenchRow) -> f64 {
    row.whole_s
}

fn kernel(row: &BenchRow) -> f64 {
    row.kernel_s
}

pub(super) fn charts(measurements: &Measurements) -> Vec<(&'static str, Chart)> {
    let content = Content { measurements };
    vec![
        ("figure-05-overhead", content.overhead()),
        ("figure-06-with-and-without-compression", content.with_and_without()),
        ("figure-07-overhead-of-compression", content.of_compression()),
        ("figure-08-ratio", content.ratio()),
        ("figure-09-ratio-of-other-compressors", content.ratio_of_others()),
        ("figure-10-time-of-other-compressors", content.time_of_others()),
        ("overview-kernel-time", content.times_by_program("Kernel time while traced, by program", kernel)),
        ("overview-whole-time", content.times_by_program("Whole time while traced, by program", whole)),
        ("overview-device-ratio", content.device_ratio_by_program()),
        ("overview-ratio-at-rest", content.ratio_at_rest_by_program()),
    ]
}

struct Content<'m> {
    measurements: &'m Measurements,
}

impl Content<'_> {
    fn chart(&self, title: &str, axis: &'static str, series: Vec<Series>) -> Chart {
        let starred =
            series.iter().flat_map(|series| series.values.iter().flatten()).any(|value| value.starred);
        Chart {
            title: title.to_owned(),
            origin: self.measurements.origin(),
            axis,
            log: true,
            groups: self.measurements.subjects.iter().map(Subject::name).collect(),
            series,
            band: None,
            notes: if starred { vec![self.star()] } else { Vec::new() },
            warning: self.measurements.is_simulated().then_some("from the simulator: not performance"),
        }
    }

    fn star(&self) -> String {
        let rows = self.measurements.subjects.iter().flat_map(|subject| {
            COMPRESSORS.iter().filter_map(|compressor| subject.compressor(compressor.name))
        });
        let bytes = rows.filter(|row| row.is_prefix()).map(|row| row.raw_bytes).max().unwrap_or(0);
        format!(
            "* only the first {} MB of the raw trace were compressed: the ratio is theirs, the time is scaled up",
            bytes / 1_000_000
        )
    }

    fn series(
        &self,
        name: impl Into<String>,
        colour: RGBColor,
        fill: Fill,
        value: impl Fn(&Subject) -> Option<Value>,
    ) -> Series {
        let values = self.measurements.subjects.iter().map(value).collect();
        Series { name: name.into(), colour, fill, values }
    }

    fn codecs(&self) -> impl Iterator<Item = (&str, RGBColor)> {
        let names = self.measurements.codecs().into_iter().filter(|name| ![UNTRACED, RAW].contains(name));
        names.zip(CODEC_COLOURS.into_iter().cycle())
    }

    fn overhead(&self) -> Chart {
        let mut series = Vec::new();
        for (codec, colour) in self.codecs() {
            series.push(self.series(format!("{codec}: whole program"), colour, Fill::Full, |subject| {
                plain(subject.overhead(codec, whole))
            }));
            series.push(self.series(format!("{codec}: kernels alone"), colour, Fill::Light, |subject| {
                plain(subject.overhead(codec, kernel))
            }));
        }
        let mut chart = self.chart("Figure 5: overhead of tracing", OVER_UNTRACED, series);
        let (low, high) = thesis::OVERHEAD;
        let name = format!("thesis, whole program: {low} to {high}");
        chart.band = Some(Band { name, low, high });
        chart
    }

    fn with_and_without(&self) -> Chart {
        let mut series = vec![self.series("raw: without compression", RAW_COLOUR, Fill::Full, |subject| {
            plain(subject.overhead(RAW, whole))
        })];
        for (codec, colour) in self.codecs() {
            series.push(
                self.series(codec, colour, Fill::Full, |subject| plain(subject.overhead(codec, whole))),
            );
        }
        let title = "Figure 6: overhead of tracing with and without compression, whole program";
        self.chart(title, OVER_UNTRACED, series)
    }

    fn of_compression(&self) -> Chart {
        let mut series = Vec::new();
        for (codec, colour) in self.codecs() {
            let over_raw = |time: fn(&BenchRow) -> f64| {
                move |subject: &Subject| {
                    plain(Some(subject.median(codec, time)? / subject.median(RAW, time)?))
                }
            };
            series.push(self.series(format!("{codec}: whole program"), colour, Fill::Full, over_raw(whole)));
            series.push(self.series(
                format!("{codec}: kernels alone"),
                colour,
                Fill::Light,
                over_raw(kernel),
            ));
        }
        let title = "Figure 7: overhead of compression alone";
        self.chart(title, "time over that of recording raw", series)
    }

    fn ratio(&self) -> Chart {
        let mut series: Vec<Series> = self
            .codecs()
            .map(|(codec, colour)| {
                self.series(codec, colour, Fill::Full, |subject| plain(subject.ratio(codec)))
            })
            .collect();
        series.push(self.thesis("ECL", CODEC_COLOURS[0], |ratios| ratios.ecl));
        self.chart("Figure 8: compression ratio", "raw bytes over device bytes", series)
    }

    fn ratio_of_others(&self) -> Chart {
        let mut series = vec![
            self.series(MAIN, CODEC_COLOURS[0], Fill::Full, |subject| plain(subject.ratio(MAIN))),
            self.thesis("ECL", CODEC_COLOURS[0], |ratios| ratios.ecl),
        ];
        for (compressor, colour) in COMPRESSORS.iter().zip(COMPRESSOR_COLOURS) {
            series.push(self.series(compressor.name, colour, Fill::Full, |subject| {
                let row = subject.compressor(compressor.name)?;
                Some(Value { number: row.ratio(), starred: row.is_prefix() })
            }));
            match compressor.name {
                "gzip -9" => series.push(self.thesis("gzip", colour, |ratios| ratios.gzip)),
                "bzip2 -9" => series.push(self.thesis("bzip2", colour, |ratios| ratios.bzip2)),
                _ => {}
            }
        }
        let title = "Figure 9: compression ratio beside that of other compressors on the raw trace";
        self.chart(title, "raw bytes over compressed bytes", series)
    }

    fn time_of_others(&self) -> Chart {
        let series = COMPRESSORS
            .iter()
            .zip(COMPRESSOR_COLOURS)
            .map(|(compressor, colour)| {
                self.series(compressor.name, colour, Fill::Full, |subject| {
                    let row = subject.compressor(compressor.name)?;
                    let number = subject.time_with(row)? / subject.median(MAIN, whole)?;
                    Some(Value { number, starred: row.is_prefix() })
                })
            })
            .collect();
        let title = "Figure 10: recording raw and compressing afterwards, over recording with ecl";
        let mut chart = self.chart(title, "whole time over that of ecl", series);
        let factor = thesis::BZIP2_TIME_REGULAR;
        let name = format!("thesis, bzip2 on the regular programs: {factor}");
        chart.band = Some(Band { name, low: factor, high: factor });
        chart
    }

    fn chart_by_program(&self, title: &str, axis: &'static str, series: Vec<Series>) -> Chart {
        let mut chart = self.chart(title, axis, series);
        chart.groups = programs(self.measurements).iter().map(Program::label).collect();
        chart
            .notes
            .insert(0, "geometric means: of a program's inputs, and of the thesis's programs".to_owned());
        chart
    }

    fn by_program(
        &self,
        name: &str,
        colour: RGBColor,
        value: impl Fn(&Program<'_>) -> Option<Value>,
    ) -> Series {
        let values = programs(self.measurements).iter().map(value).collect();
        Series { name: name.to_owned(), colour, fill: Fill::Full, values }
    }

    fn times_by_program(&self, title: &str, time: fn(&BenchRow) -> f64) -> Chart {
        let series = std::iter::once((RAW, RAW_COLOUR)).chain(self.codecs());
        let series = series
            .map(|(codec, colour)| {
                self.by_program(codec, colour, |program| {
                    plain(program.mean(|subject| subject.overhead(codec, time)))
                })
            })
            .collect();
        self.chart_by_program(title, OVER_UNTRACED, series)
    }

    fn device_ratio_by_program(&self) -> Chart {
        let series = self
            .codecs()
            .map(|(codec, colour)| {
                self.by_program(codec, colour, |program| plain(program.mean(|subject| subject.ratio(codec))))
            })
            .collect();
        let title = "Compression ratio on the device, by program";
        self.chart_by_program(title, "raw bytes over device bytes", series)
    }

    fn ratio_at_rest_by_program(&self) -> Chart {
        let codecs = self.codecs().map(|(codec, colour)| {
            self.by_program(codec, colour, |program| {
                plain(program.mean(|subject| subject.ratio_at_rest(codec)))
            })
        });
        let others = COMPRESSORS.iter().zip(COMPRESSOR_COLOURS).map(|(compressor, colour)| {
            self.by_program(compressor.name, colour, |program| {
                let (number, starred) = program.compressor(compressor.name)?;
                Some(Value { number, starred })
            })
        });
        let series = codecs.chain(others).collect();
        let title = "Size at rest: the file, and other compressors on the raw trace";
        self.chart_by_program(title, "raw bytes over bytes of the file", series)
    }

    fn thesis(&self, name: &str, colour: RGBColor, of: fn(&Ratios) -> f64) -> Series {
        self.series(format!("thesis: {name}"), colour, Fill::Outline, |subject| plain(subject.thesis.map(of)))
    }
}

fn plain(number: Option<f64>) -> Option<Value> {
    Some(Value { number: number?, starred: false })
}
