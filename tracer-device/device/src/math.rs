//! Floating-point functions of kernels.
//!
//! What has a name without `approx` computes **the same bits on every device**, GPU and simulator: square
//! roots, roundings and [`mul_add`] are exact, the others are those of the crate [`libm`], which is compiled
//! for both. How far they are from the exact result is tested against `std` over the whole range of their
//! arguments (`tests/it/math.rs` of this crate): `f32` by at most 1 ulp, but [`atan2`], [`sinh`], [`cosh`] and
//! [`tanh`] by at most 2.5 ulp; `f64` differ from `std`'s by at most 2 ulp. Not tested: `erfc`; of `f64`
//! `acos`, `atan2`, `powf`, `hypot`, `erf`.
//!
//! ```
//! use warptrace_device::math;
//!
//! assert_eq!(math::sqrt(2.25f32), 1.5);
//! assert_eq!(math::floor(-0.5f64), -1.0);
//! assert!((math::sin(math::exp(0.0f32)) - 0.841_471).abs() < 1e-6);
//! ```
//!
//! `f32` and `f64` have these methods on both devices: `abs`, `min`, `max`, `clamp`, `signum`, `copysign`,
//! `recip`, `to_degrees`, `to_radians`, `total_cmp`. A method such as `x.sin()` exists on the host only:
//! write `math::sin(x)`.
//!
//! The functions with `approx` in their names are single instructions of the GPU, as `nvcc --use_fast_math`
//! takes them; the simulator computes them as exactly as the others, so their bits differ between devices.

/// `f32` or `f64`.
pub trait Float: Copy + sealed::Functions {}
impl Float for f32 {}
impl Float for f64 {}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),*) = $single:path, $double:path;)*) => {
        mod sealed {
            /// What the functions do, for one type.
            pub trait Functions {
                $(fn $name($($argument: Self),*) -> Self;)*
            }

            impl Functions for f32 {
                $(#[inline(always)]
                fn $name($($argument: Self),*) -> Self {
                    $single($($argument),*)
                })*
            }

            impl Functions for f64 {
                $(#[inline(always)]
                fn $name($($argument: Self),*) -> Self {
                    $double($($argument),*)
                })*
            }
        }

        $($(#[$doc])*
        #[inline(always)]
        pub fn $name<T: Float>($($argument: T),*) -> T {
            T::$name($($argument),*)
        })*
    };
}

functions! {
    /// The square root, rounded to the nearest.
    sqrt(x) = super::exact::sqrt_f32, super::exact::sqrt_f64;
    /// The largest integer not above `x`.
    floor(x) = super::exact::floor_f32, super::exact::floor_f64;
    /// The smallest integer not below `x`.
    ceil(x) = super::exact::ceil_f32, super::exact::ceil_f64;
    /// The integer part.
    trunc(x) = super::exact::trunc_f32, super::exact::trunc_f64;
    /// The nearest integer; halves go away from 0.
    round(x) = libm::roundf, libm::round;
    /// The absolute value.
    abs(x) = f32::abs, f64::abs;
    /// The smaller one; the other if one is NaN.
    min(x, y) = f32::min, f64::min;
    /// The larger one; the other if one is NaN.
    max(x, y) = f32::max, f64::max;
    /// The first with the sign of the second.
    copysign(x, sign) = f32::copysign, f64::copysign;
    /// `a * b + c` with one rounding. On the GPU one instruction; Rust never forms it by itself.
    mul_add(a, b, c) = super::fma_f32, super::fma_f64;
    /// The cube root.
    cbrt(x) = libm::cbrtf, libm::cbrt;
    /// The length of `(x, y)`.
    hypot(x, y) = libm::hypotf, libm::hypot;
    /// `e` to the power of `x`.
    exp(x) = libm::expf, libm::exp;
    /// 2 to the power of `x`.
    exp2(x) = libm::exp2f, libm::exp2;
    /// `exp(x) - 1`, exact near 0, too.
    exp_m1(x) = libm::expm1f, libm::expm1;
    /// The natural logarithm.
    ln(x) = libm::logf, libm::log;
    /// The logarithm to the base 2.
    log2(x) = libm::log2f, libm::log2;
    /// The logarithm to the base 10.
    log10(x) = libm::log10f, libm::log10;
    /// `ln(1 + x)`, exact near 0, too.
    ln_1p(x) = libm::log1pf, libm::log1p;
    /// `x` to the power of `y`.
    powf(x, y) = libm::powf, libm::pow;
    /// The sine of an angle in radians.
    sin(x) = libm::sinf, libm::sin;
    /// The cosine of an angle in radians.
    cos(x) = libm::cosf, libm::cos;
    /// The tangent of an angle in radians.
    tan(x) = libm::tanf, libm::tan;
    /// The angle whose sine is `x`, in radians.
    asin(x) = libm::asinf, libm::asin;
    /// The angle whose cosine is `x`, in radians.
    acos(x) = libm::acosf, libm::acos;
    /// The angle whose tangent is `x`, in radians.
    atan(x) = libm::atanf, libm::atan;
    /// The angle of the point `(x, y)`, in radians from -π to π.
    atan2(y, x) = libm::atan2f, libm::atan2;
    /// The hyperbolic sine.
    sinh(x) = libm::sinhf, libm::sinh;
    /// The hyperbolic cosine.
    cosh(x) = libm::coshf, libm::cosh;
    /// The hyperbolic tangent.
    tanh(x) = libm::tanhf, libm::tanh;
    /// The error function, `2/√π ∫ exp(-t²) dt` from 0 to `x`.
    erf(x) = libm::erff, libm::erf;
    /// `1 - erf(x)`, exact where `erf` is near 1, too.
    erfc(x) = libm::erfcf, libm::erfc;
}

/// Operations that round to the nearest, or not at all: on the GPU instructions.
mod exact {
    macro_rules! exact {
        ($($name:ident: $type:ident = $function:ident;)*) => {$(
            #[inline(always)]
            pub(super) fn $name(x: $type) -> $type {
                #[cfg(target_arch = "nvptx64")]
                return core::$type::math::$function(x);
                #[cfg(not(target_arch = "nvptx64"))]
                x.$function()
            }
        )*};
    }

    exact! {
        sqrt_f32: f32 = sqrt;
        sqrt_f64: f64 = sqrt;
        floor_f32: f32 = floor;
        floor_f64: f64 = floor;
        ceil_f32: f32 = ceil;
        ceil_f64: f64 = ceil;
        trunc_f32: f32 = trunc;
        trunc_f64: f64 = trunc;
    }
}

/// `a * b + c` with one rounding; [`mul_add`].
#[inline(always)]
pub fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    #[cfg(target_arch = "nvptx64")]
    {
        core::f64::math::mul_add(a, b, c)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    a.mul_add(b, c)
}

/// `a * b + c` with one rounding; [`mul_add`].
#[inline(always)]
pub fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        core::f32::math::mul_add(a, b, c)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    a.mul_add(b, c)
}

macro_rules! approximate {
    ($($(#[$doc:meta])* $name:ident = $instruction:literal, |$x:ident| $otherwise:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name($x: f32) -> f32 {
            #[cfg(target_arch = "nvptx64")]
            {
                let result: f32;
                // SAFETY: register arithmetic.
                unsafe {
                    core::arch::asm!(concat!($instruction, " {}, {};"), out(reg32) result, in(reg32) $x,
                        options(pure, nomem, nostack, preserves_flags));
                }
                result
            }
            #[cfg(not(target_arch = "nvptx64"))]
            {
                $otherwise
            }
        }
    )*};
}

approximate! {
    /// `1 / sqrt(x)`, approximately: on the GPU the hardware's `rsqrt.approx.f32` (2 ulp), elsewhere division
    /// and square root in f32. The bits differ between devices.
    rsqrt_approx_f32 = "rsqrt.approx.f32", |x| 1.0 / x.sqrt();
    /// The square root, approximately: on the GPU `sqrt.approx.f32`.
    sqrt_approx_f32 = "sqrt.approx.f32", |x| x.sqrt();
    /// `1 / x`, approximately: on the GPU `rcp.approx.f32`.
    recip_approx_f32 = "rcp.approx.f32", |x| x.recip();
    /// 2 to the power of `x`, approximately: on the GPU `ex2.approx.f32`.
    exp2_approx_f32 = "ex2.approx.f32", |x| libm::exp2f(x);
    /// The logarithm to the base 2, approximately: on the GPU `lg2.approx.f32`.
    log2_approx_f32 = "lg2.approx.f32", |x| libm::log2f(x);
    /// The sine of a small angle in radians, approximately: on the GPU `sin.approx.f32`.
    sin_approx_f32 = "sin.approx.f32", |x| libm::sinf(x);
    /// The cosine of a small angle in radians, approximately: on the GPU `cos.approx.f32`.
    cos_approx_f32 = "cos.approx.f32", |x| libm::cosf(x);
}
