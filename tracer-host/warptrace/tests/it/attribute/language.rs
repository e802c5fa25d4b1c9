//! All branching constructs of the language in traced functions. Traced and untraced functions return the
//! same results, and all lanes reconverge after them.
#![allow(clippy::all, reason = "it says things in as many ways as there are")]

use super::support::{self, global, lanes, named};
use warptrace_format::Counting;
use warptrace_macros::kernels;

/// Compiles functions twice: traced, with a kernel that calls `all`, and untraced.
macro_rules! twice {
    ($($functions:tt)*) => {
        #[kernels(device = warptrace_device)]
        mod traced {
            //! Traced functions.
            #![allow(unused)]
            use warptrace_device::{DisjointSlice, thread};

            #[kernel]
            pub(crate) fn run(out: DisjointSlice<u32>, seed: u32) {
                #![allow(unused)]
                let Some((index, value)) = out.own(thread::index()) else { return };
                *value = all(seed + index as u32);
                trace!("met");
            }

            $($functions)*
        }
        mod plain {
            $($functions)*
        }
    };
}

twice! {
    #[derive(Clone, Copy, PartialEq)]
    pub(crate) enum Shape {
        Point,
        Circle(u32),
        Box { width: u32, height: u32 },
    }

    pub(crate) fn shape(x: u32) -> Shape {
        match x % 7 {
            0 => Shape::Point,
            odd @ (1 | 3 | 5) => Shape::Circle(odd),
            even if even > 4 => return Shape::Point,
            width => {
                let height = if x > 50 { x - 50 } else { x };
                Shape::Box { width, height }
            }
        }
    }

    impl Shape {
        fn size(self) -> Option<u32> {
            Some(match self {
                Self::Point => None?,
                Self::Circle(radius) => radius * radius,
                Self::Box { width, height } if width == height => width.checked_mul(width)?,
                Self::Box { width, height } => width * height,
            })
        }
    }

    pub(crate) fn parse(x: u32) -> Result<u32, u32> {
        let Some(size) = shape(x).size() else {
            return Err(x);
        };
        if size > 200 { Err(size) } else { Ok(size) }
    }

    pub(crate) fn both(x: u32) -> Result<u32, u32> {
        Ok(parse(x)? + parse(x / 2)?)
    }

    pub(crate) fn search(x: u32) -> u32 {
        let mut found = 0;
        'rows: for row in 0..8 {
            let mut column = 0;
            'columns: while column < 8 {
                column += 1;
                match (row * column + x) % 11 {
                    0 => continue 'rows,
                    1 if row > 2 => continue,
                    2 => break 'columns,
                    3 if column > 5 => break 'rows,
                    _ => found += 1,
                }
                if found > 40 { break }
            }
            let step = loop {
                found += 1;
                if found % 3 == 0 {
                    break 1;
                }
                if found % 5 == 0 {
                    break 2;
                }
            };
            found += step;
        }
        found
    }

    pub(crate) fn nested(x: u32) -> u32 {
        let value = 'block: {
            if x % 3 == 0 {
                break 'block 1;
            }
            if let Ok(sum) = both(x) && sum > 20 {
                break 'block sum;
            }
            let total: u32 = (0..x % 5).map(|k| if k % 2 == 0 { k } else { 1 }).sum();
            total
        };
        let mut count = value;
        while let Some(less) = count.checked_sub(7) {
            count = less;
        }
        let last = loop {
            count += 3;
            if count > 30 {
                break count;
            }
        };
        unsafe_half(last)
    }

    fn unsafe_half(x: u32) -> u32 {
        // SAFETY: `half` has no requirements.
        if x > 4 { unsafe { half(x) } } else { x }
    }

    unsafe fn half(x: u32) -> u32 {
        if x & 1 == 1 { x / 2 + 1 } else { x / 2 }
    }

    fn h(x: u32) -> u32 {
        if x > 9 { x - 9 } else { x + 1 }
    }

    /// Returns a borrow from a possibly temporary argument.
    fn larger<'a>(pair: &'a [u32; 2]) -> Option<&'a u32> {
        if pair[0] > pair[1] { Some(&pair[0]) } else { pair.last() }
    }

    const fn size(x: usize) -> usize {
        if x > 2 { x } else { 2 }
    }

    /// Calls at the start of a block, of an arm and of a statement, with the tokens that may follow them.
    pub(crate) fn calls_that_begin(x: u32) -> Option<u32> {
        let a = if x % 2 == 0 { h(x) + 1 } else { 3 };
        let b = match x % 3 {
            0 => h(x) + 1,
            1 => h(x) as u64 as u32,
            _ => *larger(&[h(x), 4])? + h(2),
        };
        let c = { h(a) + h(b) };
        let d = { h(x) == 1 } && { h(x) < h(a) } || { !h(x) > 3 };
        let e = { h(x) as u64 };
        let Some(f) = larger(&[a, b]).copied() else { return None };
        let g = &h(f);
        let sizes: [u32; if size(1) > 1 { 3 } else { 4 }] = [*g; { if size(3) > 1 { 3 } else { 4 } }];
        #[allow(clippy::let_and_return)]
        h(1);
        #[cfg(any())]
        while h(1) > 2 {}
        #[cfg(any())]
        let Some(_) = larger(&[1, 2]) else { return None };
        #[allow(unused)]
        for k in &[h(c), 3] {
            if *k > 100 {
                #[allow(clippy::needless_return)]
                return Some(*k);
            }
        }
        // A variable with the name of a traced function.
        let seen = vec![1];
        let parse = move |x: u32| x + seen.len() as u32;
        let j = parse(x) + parse(2);
        let i = loop { break h(x + j) } + if d { 1 } else { h(x) - 1 };
        let mut j = i;
        *(&mut j) += h(f);
        sizes.iter().fold(j, |sum, k| sum ^ h(*k)).checked_add(e as u32)?.checked_add(larger(&[j, c]).map(|x| *x)?)
    }

    pub(crate) fn fibonacci(x: u32) -> u32 {
        if x < 2 { return x }
        fibonacci(x - 1) + fibonacci(x - 2)
    }

    pub(crate) fn all(x: u32) -> u32 {
        let parsed = match both(x) {
            Ok(value) => value,
            Err(value) => value + 1000,
        };
        parsed * 31 + search(x) * 7 + nested(x) + calls_that_begin(x).unwrap_or(1) + fibonacci(x % 9)
    }
}

/// A host array, in the form for kernels.
struct Array<'a>(std::cell::RefCell<&'a mut [u32]>);

// SAFETY: the borrowed array of numbers.
unsafe impl warptrace_device::DeviceArray<u32> for Array<'_> {
    fn global(&self) -> warptrace_device::Global<u32> {
        global(&mut self.0.borrow_mut())
    }
}

#[test]
fn traced_functions_compute_the_same_and_lanes_meet_behind_them() {
    for seed in (0..320).step_by(32) {
        let mut ways = Vec::new();
        for counting in [Counting::Never, Counting::All] {
            let mut out = vec![0; 32];
            let array = Array(std::cell::RefCell::new(&mut out));
            let call = traced::run(&array, seed);
            // SAFETY: an element for each lane.
            let events = unsafe { support::record(&traced::MODULE, &call, counting) };
            let met = named(&events, &traced::MODULE, "run: met");
            assert_eq!(met, [u32::MAX], "seed {seed}");
            drop(call);
            let expected: Vec<u32> = (seed..seed + 32).map(plain::all).collect();
            assert_eq!(out, expected, "seed {seed}");
            ways.push(lanes(&events));
        }
        assert!(ways[0] == ways[1], "counted loops change no lane's way, seed {seed}");
    }
}

#[test]
fn traced_functions_run_on_the_host_by_themselves() {
    for x in 0..1000 {
        assert_eq!(traced::all(x), plain::all(x), "{x}");
    }
}
