//! Prices European options with the Black-Scholes formula.

#[warptrace::kernels]
pub mod options {
    use warptrace::device::{DisjointSlice, math, thread};

    /// Returns the probability that a standard normal variable is below `x`.
    fn below(x: f64) -> f64 {
        0.5 * math::erfc(-x * core::f64::consts::FRAC_1_SQRT_2)
    }

    /// Computes the price of a call option for each of `strikes`. `share` is the current price of the share.
    /// `years` is the time until the option expires. `rate` is the interest rate and `volatilities` are the
    /// volatilities of the share, both for one year. The price of an expired option is its payoff.
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
            // `warptrace values` shows these values and which of them was NaN first.
            trace!("deviation", deviation; "first", first);
            share * below(first) - strike * math::exp(-rate * left) * below(first - deviation)
        } else {
            math::max(share - strike, 0.0)
        };
    }
}
