//! Prices of European options by the formula of Black and Scholes.

#[warptrace::kernels]
pub mod options {
    use warptrace::device::{DisjointSlice, math, thread};

    /// The probability that a normally distributed number is below `x`.
    fn below(x: f64) -> f64 {
        0.5 * math::erfc(-x * core::f64::consts::FRAC_1_SQRT_2)
    }

    /// Leaves the price of a call for each of `strikes`, in units of the share, whose price now is `share`.
    /// `years` are until the option ends, `rate` is the interest and `volatilities` are those of the share,
    /// all for a year. An option that has ended is worth what it pays.
    #[kernel]
    pub fn calls(
        share: f64,
        rate: f64,
        strikes: &[f64],
        years: &[f64],
        volatilities: &[f64],
        prices: DisjointSlice<f64>,
    ) {
        let Some((option, price)) = prices.own(thread::index()) else { return };
        let (strike, left, volatility) = (strikes[option], years[option], volatilities[option]);
        *price = if left > 0.0 {
            let deviation = volatility * math::sqrt(left);
            let first =
                (math::ln(share / strike) + (rate + 0.5 * volatility * volatility) * left) / deviation;
            // `warptrace values` says what they were, and which was NaN first.
            trace!("deviation", deviation; "first", first);
            share * below(first) - strike * math::exp(-rate * left) * below(first - deviation)
        } else {
            math::max(share - strike, 0.0)
        };
    }
}
