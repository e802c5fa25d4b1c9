//! Compares floating-point functions with `std` over the whole range of their arguments.

use warptrace_device::math;

const STRIDE: usize = 4_093;
const SAMPLES: usize = 300_000;

fn ulp(value: f64) -> f64 {
    let single = value as f32;
    if single.is_infinite() {
        return f64::from(f32::MAX) - f64::from(f32::MAX.next_down());
    }
    let single = single.abs();
    f64::from(single.next_up()) - f64::from(single)
}

fn error(got: f32, exact: f64) -> f64 {
    let rounded = exact as f32;
    if got.is_nan() || rounded.is_nan() {
        return if got.is_nan() && rounded.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got == rounded {
        return 0.0;
    }
    let reach = |value: f32| {
        if value.is_infinite() { f64::from(f32::MAX).copysign(value.into()) } else { value.into() }
    };
    (reach(got) - exact.clamp(-f64::from(f32::MAX), f64::from(f32::MAX))).abs() / ulp(exact)
}

/// Returns pseudorandom numbers of all magnitudes (splitmix64).
fn bits(number: usize) -> u64 {
    let mut x = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Returns the number of doubles between two values, which may differ in sign.
fn apart(x: f64, y: f64) -> u64 {
    if x.is_nan() && y.is_nan() || x == y {
        return 0;
    }
    let order = |value: f64| {
        let bits = value.to_bits() as i64;
        if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits }
    };
    if x.is_nan() || y.is_nan() { u64::MAX } else { order(x).abs_diff(order(y)) }
}

#[test]
fn functions_of_one_f32_are_as_near_as_is_said() {
    type Function = (&'static str, fn(f32) -> f32, fn(f64) -> f64);
    let exact: [Function; 5] = [
        ("sqrt", math::sqrt, f64::sqrt),
        ("floor", math::floor, f64::floor),
        ("ceil", math::ceil, f64::ceil),
        ("trunc", math::trunc, f64::trunc),
        ("round", math::round, f64::round),
    ];
    let near: [Function; 15] = [
        ("cbrt", math::cbrt, f64::cbrt),
        ("exp", math::exp, f64::exp),
        ("exp2", math::exp2, f64::exp2),
        ("exp_m1", math::exp_m1, f64::exp_m1),
        ("ln", math::ln, f64::ln),
        ("log2", math::log2, f64::log2),
        ("log10", math::log10, f64::log10),
        ("ln_1p", math::ln_1p, f64::ln_1p),
        ("sin", math::sin, f64::sin),
        ("cos", math::cos, f64::cos),
        ("tan", math::tan, f64::tan),
        ("asin", math::asin, f64::asin),
        ("acos", math::acos, f64::acos),
        ("atan", math::atan, f64::atan),
        ("erf", math::erf, math::erf),
    ];
    let hyperbolic: [Function; 3] =
        [("sinh", math::sinh, f64::sinh), ("cosh", math::cosh, f64::cosh), ("tanh", math::tanh, f64::tanh)];
    let mut worst = Vec::new();
    for (bound, functions) in [(0.0, &exact[..]), (1.0, &near[..]), (2.5, &hyperbolic[..])] {
        for (name, function, reference) in functions {
            let tried = (0..=u32::MAX).step_by(STRIDE).map(f32::from_bits);
            let errors = tried.map(|x| (error(function(x), reference(x.into())), x));
            let (error, x) = errors.max_by(|a, b| a.0.total_cmp(&b.0)).expect("some were tried");
            worst.push(format!("{name}: {error:.3} ulp at {x:e}"));
            if error > bound {
                worst.push(format!("... more than {bound}: {}, {}", function(x), reference(x.into())));
            }
        }
    }
    let is_more = worst.iter().any(|line| line.starts_with("..."));
    assert!(!is_more, "{}", worst.join("\n"));
    println!("{}", worst.join("\n"));
}

#[test]
fn functions_of_two_f32_are_as_near_as_is_said() {
    type Function = (&'static str, f64, fn(f32, f32) -> f32, fn(f64, f64) -> f64);
    let functions: [Function; 5] = [
        ("powf", 1.0, math::powf, f64::powf),
        ("atan2", 2.5, math::atan2, f64::atan2),
        ("hypot", 1.0, math::hypot, f64::hypot),
        ("min", 0.0, math::min, f64::min),
        ("copysign", 0.0, math::copysign, f64::copysign),
    ];
    for (name, bound, function, reference) in functions {
        for number in 0..SAMPLES {
            let word = bits(number);
            // Half of them have arbitrary bits. For the others, the results are in range.
            let (x, y) = if number % 2 == 0 {
                (f32::from_bits(word as u32), f32::from_bits((word >> 32) as u32))
            } else {
                ((word as u32) as f32 / 1e7, (word >> 32) as u32 as f32 / 1e8 - 20.0)
            };
            let found = error(function(x, y), reference(x.into(), y.into()));
            assert!(found <= bound, "{name}({x:e}, {y:e}): {found} ulp, {:e}", function(x, y));
        }
    }
}

#[test]
fn functions_of_f64_differ_from_std_by_two_ulp_at_most() {
    type Function = (&'static str, fn(f64) -> f64, fn(f64) -> f64);
    let functions: [Function; 19] = [
        ("sqrt", math::sqrt, f64::sqrt),
        ("floor", math::floor, f64::floor),
        ("round", math::round, f64::round),
        ("cbrt", math::cbrt, f64::cbrt),
        ("exp", math::exp, f64::exp),
        ("exp2", math::exp2, f64::exp2),
        ("exp_m1", math::exp_m1, f64::exp_m1),
        ("ln", math::ln, f64::ln),
        ("log2", math::log2, f64::log2),
        ("log10", math::log10, f64::log10),
        ("ln_1p", math::ln_1p, f64::ln_1p),
        ("sin", math::sin, f64::sin),
        ("cos", math::cos, f64::cos),
        ("tan", math::tan, f64::tan),
        ("asin", math::asin, f64::asin),
        ("atan", math::atan, f64::atan),
        ("sinh", math::sinh, f64::sinh),
        ("cosh", math::cosh, f64::cosh),
        ("tanh", math::tanh, f64::tanh),
    ];
    let mut worst = Vec::new();
    for (name, function, reference) in functions {
        let tried = (0..SAMPLES).map(|number| {
            let word = bits(number);
            if number % 2 == 0 { f64::from_bits(word) } else { (word as i64) as f64 / (1u64 << 56) as f64 }
        });
        let (most, x) = tried
            .map(|x| (apart(function(x), reference(x)), x))
            .max_by_key(|found| found.0)
            .expect("some were tried");
        worst.push(format!("{name}: {most} at {x:e}"));
        if most > 2 {
            worst.push(format!("... more than 2: {:e}, {:e}", function(x), reference(x)));
        }
    }
    assert!(!worst.iter().any(|line| line.starts_with("...")), "{}", worst.join("\n"));
    println!("{}", worst.join("\n"));
}
