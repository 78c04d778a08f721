//! Limits of a run: time, turns, tokens, cost.
//!
//! A [`Budget`] holds the limits, a [`Meter`] counts against them and returns [`Exceeded`], whose
//! text is the reason for the user. The caller cancels the turn.

use std::fmt;
use std::time::{Duration, Instant};

use attache::wire::v1::{Cost, UsageUpdate};

/// Limits of a run. `None` means no limit.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Budget {
    /// Time since the start of the meter.
    pub time: Option<Duration>,
    /// Number of prompts.
    pub turns: Option<u32>,
    /// Tokens of all turns together.
    pub tokens: Option<u64>,
    /// Cost in the currency that the agent reports.
    pub cost: Option<f64>,
}

impl Budget {
    /// Creates a budget without limits.
    pub fn new() -> Self {
        Budget::default()
    }

    /// Limits the time.
    #[must_use]
    pub fn time(mut self, time: Option<Duration>) -> Self {
        self.time = time;
        self
    }

    /// Limits the turns.
    #[must_use]
    pub fn turns(mut self, turns: Option<u32>) -> Self {
        self.turns = turns;
        self
    }

    /// Limits the tokens.
    #[must_use]
    pub fn tokens(mut self, tokens: Option<u64>) -> Self {
        self.tokens = tokens;
        self
    }

    /// Limits the cost.
    #[must_use]
    pub fn cost(mut self, cost: Option<f64>) -> Self {
        self.cost = cost;
        self
    }
}

/// The limit that was reached.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Exceeded {
    /// The time is over.
    Time(Duration),
    /// The number of turns is used up.
    Turns(u32),
    /// More tokens were used than allowed.
    Tokens {
        /// Used.
        used: u64,
        /// Allowed.
        limit: u64,
    },
    /// The cost is higher than allowed.
    Cost {
        /// Spent.
        spent: Cost,
        /// Allowed.
        limit: f64,
    },
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exceeded::Time(limit) => write!(f, "time limit of {} s reached", limit.as_secs_f64()),
            Exceeded::Turns(limit) => {
                write!(f, "limit of {limit} turn{} reached", plural(u64::from(*limit)))
            }
            Exceeded::Tokens { used, limit } => write!(
                f,
                "{used} token{} used, the limit is {limit}",
                if *used == 1 { " is" } else { "s are" }
            ),
            Exceeded::Cost { spent, limit } => {
                write!(f, "{:.4} {} are spent, the limit is {limit}", spent.amount, spent.currency)
            }
        }
    }
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

impl std::error::Error for Exceeded {}

/// Counts against a budget.
#[derive(Clone, Debug)]
pub struct Meter {
    budget: Budget,
    start: Instant,
    turns: u32,
    /// Tokens of the session, as prompt responses report them.
    counted: u64, // PROMPT-19
    /// The largest reported size of the context: each of these tokens was paid for at least once.
    window: u64, // MSG-05
    cost: Option<Cost>,
}

impl Meter {
    /// Starts the meter now.
    pub fn new(budget: Budget) -> Self {
        Meter::starting_at(budget, Instant::now())
    }

    /// Starts the meter at a given time.
    pub fn starting_at(budget: Budget, start: Instant) -> Self {
        Meter { budget, start, turns: 0, counted: 0, window: 0, cost: None }
    }

    /// The time at which the time limit is reached.
    pub fn deadline(&self) -> Option<Instant> {
        self.budget.time.and_then(|time| self.start.checked_add(time))
    }

    /// Counts a turn that is about to begin.
    ///
    /// # Errors
    /// When a limit is reached.
    pub fn turn(&mut self, now: Instant) -> Result<(), Exceeded> {
        self.check(now)?;
        if let Some(limit) = self.budget.turns.filter(|limit| self.turns >= *limit) {
            return Err(Exceeded::Turns(limit));
        }
        self.turns += 1;
        Ok(())
    }

    // MSG-05
    /// Counts a usage update: context size and cost of the session.
    ///
    /// # Errors
    /// When a limit is reached.
    pub fn usage(&mut self, update: &UsageUpdate) -> Result<(), Exceeded> {
        self.window = self.window.max(update.used);
        if let Some(cost) = &update.cost {
            self.cost = Some(cost.clone());
        }
        self.check_usage()
    }

    // PROMPT-19
    /// Counts the tokens of the session so far: `total_tokens` in a prompt response.
    ///
    /// # Errors
    /// When a limit is reached.
    pub fn counted(&mut self, tokens: u64) -> Result<(), Exceeded> {
        self.counted = self.counted.max(tokens);
        self.check_usage()
    }

    /// Checks all limits except the number of turns.
    ///
    /// # Errors
    /// When a limit is reached.
    pub fn check(&self, now: Instant) -> Result<(), Exceeded> {
        match self.budget.time {
            Some(limit) if self.deadline().is_some_and(|deadline| now >= deadline) => {
                Err(Exceeded::Time(limit))
            }
            _ => self.check_usage(),
        }
    }

    fn check_usage(&self) -> Result<(), Exceeded> {
        let used = self.tokens();
        if let Some(limit) = self.budget.tokens.filter(|limit| used > *limit) {
            return Err(Exceeded::Tokens { used, limit });
        }
        match (&self.cost, self.budget.cost) {
            (Some(spent), Some(limit)) if spent.amount > limit => {
                Err(Exceeded::Cost { spent: spent.clone(), limit })
            }
            _ => Ok(()),
        }
    }

    /// The tokens used so far, as reported by the agent.
    pub fn tokens(&self) -> u64 {
        self.counted.max(self.window)
    }

    /// The cost so far, as reported by the agent.
    pub fn cost(&self) -> Option<&Cost> {
        self.cost.as_ref()
    }

    /// The number of turns begun.
    pub fn turns(&self) -> u32 {
        self.turns
    }
}
