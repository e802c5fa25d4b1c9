//! Floating-point operations whose result is the same on every device, and one that is fast instead.

/// `a * b + c` with one rounding. On the GPU one instruction; Rust never forms it by itself.
#[inline(always)]
pub fn fma_f64(a: f64, b: f64, c: f64) -> f64 {
    #[cfg(target_arch = "nvptx64")]
    {
        core::f64::math::mul_add(a, b, c)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    a.mul_add(b, c)
}

/// `a * b + c` with one rounding.
#[inline(always)]
pub fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        core::f32::math::mul_add(a, b, c)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    a.mul_add(b, c)
}

/// `1 / sqrt(x)`, approximately: on the GPU the hardware's `rsqrt.approx.f32` (2 ulp), elsewhere division and
/// square root in f32. The bits differ between devices.
#[inline(always)]
pub fn rsqrt_approx_f32(x: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let result: f32;
        // SAFETY: register arithmetic.
        unsafe {
            core::arch::asm!("rsqrt.approx.f32 {}, {};", out(reg32) result, in(reg32) x,
                options(pure, nomem, nostack, preserves_flags));
        }
        result
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        1.0 / x.sqrt()
    }
}
