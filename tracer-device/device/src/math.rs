//! Floating-point functions for kernels.
//!
//! Functions without `approx` in their names compute **the same bits on every device**, GPU and simulator.
//! Square roots, roundings and [`mul_add`] are exact. The others are from the crate [`libm`]. Tests compare
//! them with `std` over the whole range of their arguments. The maximum error of `f32` functions is 1 ulp,
//! except [`atan2`], [`sinh`], [`cosh`] and [`tanh`] with 2.5 ulp. `f64` functions differ from `std` by at
//! most 2 ulp. Not tested: `erfc`, and the `f64` versions of `acos`, `atan2`, `powf`, `hypot`, `erf`.
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
//! `recip`, `to_degrees`, `to_radians`, `total_cmp`. Others, such as `x.sin()`, exist only on the host.
//!
//! Functions with `approx` in their names are single GPU instructions, the same as `nvcc --use_fast_math`
//! selects. The simulator computes them with full precision, so the bits differ between devices.

/// `f32` or `f64`.
pub trait Float: Copy + sealed::Functions {}
impl Float for f32 {}
impl Float for f64 {}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),*) = $single:path, $double:path;)*) => {
        mod sealed {
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
    /// Returns the square root, correctly rounded.
    sqrt(x) = super::exact::sqrt_f32, super::exact::sqrt_f64;
    /// Returns the largest integer not greater than `x`.
    floor(x) = super::exact::floor_f32, super::exact::floor_f64;
    /// Returns the smallest integer not less than `x`.
    ceil(x) = super::exact::ceil_f32, super::exact::ceil_f64;
    /// Returns the integer part.
    trunc(x) = super::exact::trunc_f32, super::exact::trunc_f64;
    /// Returns the nearest integer. Rounds half away from 0.
    round(x) = libm::roundf, libm::round;
    /// Returns the absolute value.
    abs(x) = f32::abs, f64::abs;
    /// Returns the minimum. If one argument is NaN, returns the other.
    min(x, y) = f32::min, f64::min;
    /// Returns the maximum. If one argument is NaN, returns the other.
    max(x, y) = f32::max, f64::max;
    /// Returns the absolute value of `x` with the sign of `sign`.
    copysign(x, sign) = f32::copysign, f64::copysign;
    /// Returns `a * b + c` with one rounding, in one GPU instruction. Rust never contracts expressions to it.
    mul_add(a, b, c) = super::fma_f32, super::fma_f64;
    /// Returns the cube root.
    cbrt(x) = libm::cbrtf, libm::cbrt;
    /// Returns the length of `(x, y)`.
    hypot(x, y) = libm::hypotf, libm::hypot;
    /// Returns `e` to the power of `x`.
    exp(x) = libm::expf, libm::exp;
    /// Returns 2 to the power of `x`.
    exp2(x) = libm::exp2f, libm::exp2;
    /// Returns `exp(x) - 1`, accurate also near 0.
    exp_m1(x) = libm::expm1f, libm::expm1;
    /// Returns the natural logarithm.
    ln(x) = libm::logf, libm::log;
    /// Returns the logarithm to base 2.
    log2(x) = libm::log2f, libm::log2;
    /// Returns the logarithm to base 10.
    log10(x) = libm::log10f, libm::log10;
    /// Returns `ln(1 + x)`, accurate also near 0.
    ln_1p(x) = libm::log1pf, libm::log1p;
    /// Returns `x` to the power of `y`.
    powf(x, y) = libm::powf, libm::pow;
    /// Returns the sine of an angle in radians.
    sin(x) = libm::sinf, libm::sin;
    /// Returns the cosine of an angle in radians.
    cos(x) = libm::cosf, libm::cos;
    /// Returns the tangent of an angle in radians.
    tan(x) = libm::tanf, libm::tan;
    /// Returns the arcsine in radians.
    asin(x) = libm::asinf, libm::asin;
    /// Returns the arccosine in radians.
    acos(x) = libm::acosf, libm::acos;
    /// Returns the arctangent in radians.
    atan(x) = libm::atanf, libm::atan;
    /// Returns the angle of the point `(x, y)` in radians, from -π to π.
    atan2(y, x) = libm::atan2f, libm::atan2;
    /// Returns the hyperbolic sine.
    sinh(x) = libm::sinhf, libm::sinh;
    /// Returns the hyperbolic cosine.
    cosh(x) = libm::coshf, libm::cosh;
    /// Returns the hyperbolic tangent.
    tanh(x) = libm::tanhf, libm::tanh;
    /// Returns the error function, `2/√π ∫ exp(-t²) dt` from 0 to `x`.
    erf(x) = libm::erff, libm::erf;
    /// Returns `1 - erf(x)`, accurate also where `erf` is near 1.
    erfc(x) = libm::erfcf, libm::erfc;
}

/// Correctly rounded or exact operations. Single instructions on the GPU.
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

/// Returns `a * b + c` with one rounding, like [`mul_add`].
#[inline(always)]
pub fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    #[cfg(target_arch = "nvptx64")]
    {
        core::f64::math::mul_add(a, b, c)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    a.mul_add(b, c)
}

/// Returns `a * b + c` with one rounding, like [`mul_add`].
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
    /// Returns an approximation of `1 / sqrt(x)`: `rsqrt.approx.f32` on the GPU (2 ulp).
    rsqrt_approx_f32 = "rsqrt.approx.f32", |x| 1.0 / x.sqrt();
    /// Returns an approximation of the square root: `sqrt.approx.f32` on the GPU.
    sqrt_approx_f32 = "sqrt.approx.f32", |x| x.sqrt();
    /// Returns an approximation of `1 / x`: `rcp.approx.f32` on the GPU.
    recip_approx_f32 = "rcp.approx.f32", |x| x.recip();
    /// Returns an approximation of 2 to the power of `x`: `ex2.approx.f32` on the GPU.
    exp2_approx_f32 = "ex2.approx.f32", |x| libm::exp2f(x);
    /// Returns an approximation of the logarithm to base 2: `lg2.approx.f32` on the GPU.
    log2_approx_f32 = "lg2.approx.f32", |x| libm::log2f(x);
    /// Returns an approximation of the sine of a small angle in radians: `sin.approx.f32` on the GPU.
    sin_approx_f32 = "sin.approx.f32", |x| libm::sinf(x);
    /// Returns an approximation of the cosine of a small angle in radians: `cos.approx.f32` on the GPU.
    cos_approx_f32 = "cos.approx.f32", |x| libm::cosf(x);
}
