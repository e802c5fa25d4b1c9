//! Prices options, records the kernel, and checks the prices.

mod kernels;

use kernels::options;
use warptrace::device::math;
use warptrace::{Device, LaunchConfig, Spaces};

const OPTIONS: usize = 10_000;
const SHARE: f64 = 100.0;
const RATE: f64 = 0.03;

/// Integrates the payoff over all final share prices. Independent of the formula, but slow.
fn reference(strike: f64, years: f64, volatility: f64) -> f64 {
    let deviation = volatility * years.sqrt();
    let drift = (RATE - 0.5 * volatility * volatility) * years;
    let (steps, reach) = (40_000, 12.0);
    let width = 2.0 * reach / f64::from(steps);
    let paid = |step: u32| {
        let x = -reach + (f64::from(step) + 0.5) * width;
        let share = SHARE * (drift + deviation * x).exp();
        (share - strike).max(0.0) * (-0.5 * x * x).exp()
    };
    let sum: f64 = (0..steps).map(paid).sum();
    (-RATE * years).exp() * sum * width / std::f64::consts::TAU.sqrt()
}

fn main() -> Result<(), warptrace::Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "black_scholes.wtrc".to_owned());
    let device = Device::auto()?;
    if let Some(reason) = device.no_gpu() {
        println!("on the simulator: {reason}");
    }

    let number = |option: usize, step: usize, count: usize| (option * step % count) as f64 / count as f64;
    let strikes: Vec<f64> = (0..OPTIONS).map(|option| 60.0 + 80.0 * number(option, 7, 1_009)).collect();
    // Every seventh option has expired.
    let years: Vec<f64> = (0..OPTIONS).map(|option| 3.0 * number(option, 1, 7)).collect();
    let volatilities: Vec<f64> = (0..OPTIONS).map(|option| 0.1 + 0.5 * number(option, 13, 503)).collect();

    let prices = device.zeros::<f64>(OPTIONS)?;
    let mut trace = device.trace(&path).accesses(Spaces::VALUES).start(&options::MODULE)?;
    let [strikes_there, years_there, volatilities_there] =
        [device.upload(&strikes)?, device.upload(&years)?, device.upload(&volatilities)?];
    let call = options::calls(SHARE, RATE, &strikes_there, &years_there, &volatilities_there, &prices);
    trace.launch(&call, &LaunchConfig::for_elements(OPTIONS))?;
    println!("{}", trace.finish()?);

    let prices = prices.download()?;
    for option in (0..OPTIONS).step_by(97) {
        let (strike, years) = (strikes[option], years[option]);
        let expected = if years > 0.0 {
            reference(strike, years, volatilities[option])
        } else {
            math::max(SHARE - strike, 0.0)
        };
        let found = prices[option];
        assert!((found - expected).abs() < 1e-4, "option {option}: {found} instead of {expected}");
    }
    println!("{OPTIONS} prices, of which each 97th is that of the integral");
    Ok(())
}
