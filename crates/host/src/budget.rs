//! How much a run may take: time, turns, tokens, money.
//!
//! A [`Budget`] is what the user allows, a [`Meter`] counts against it. The meter says [`Exceeded`], whose text tells the user why
//! the turn was cancelled; cancelling is the caller's part.

use std::fmt;
use std::time::{Duration, Instant};

use attache::wire::v1::{Cost, Usage, UsageUpdate};

/// What a run may take; what is `None` is without a limit.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Budget {
    /// How long, from the start of the meter.
    pub time: Option<Duration>,
    /// How many prompts.
    pub turns: Option<u32>,
    /// How many tokens, of all turns together.
    pub tokens: Option<u64>,
    /// How much money, in whatever currency the agent counts.
    pub cost: Option<f64>,
}

impl Budget {
    /// Without limits.
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

    /// Limits the money.
    #[must_use]
    pub fn cost(mut self, cost: Option<f64>) -> Self {
        self.cost = cost;
        self
    }
}

/// Which limit was reached.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Exceeded {
    /// The time is over.
    Time(Duration),
    /// There was one turn too many.
    Turns(u32),
    /// So many tokens were used, and so many were allowed.
    Tokens {
        /// Used.
        used: u64,
        /// Allowed.
        limit: u64,
    },
    /// So much was spent, and so much was allowed.
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
            Exceeded::Time(limit) => write!(f, "the time limit of {} s is over", limit.as_secs_f64()),
            Exceeded::Turns(limit) => {
                write!(f, "the limit of {limit} turn{} is reached", plural(u64::from(*limit)))
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
    /// Of the session, as the answers to prompts count them (PROMPT-19).
    counted: u64,
    /// The most that the context window has held (MSG-05): every one of these tokens was paid for at least once.
    window: u64,
    cost: Option<Cost>,
}

impl Meter {
    /// Begins to count now.
    pub fn new(budget: Budget) -> Self {
        Meter::starting_at(budget, Instant::now())
    }

    /// Begins to count at some moment.
    pub fn starting_at(budget: Budget, start: Instant) -> Self {
        Meter { budget, start, turns: 0, counted: 0, window: 0, cost: None }
    }

    /// When the time is over.
    pub fn deadline(&self) -> Option<Instant> {
        self.budget.time.and_then(|time| self.start.checked_add(time))
    }

    /// A turn is about to begin.
    ///
    /// # Errors
    /// When it may not.
    pub fn turn(&mut self, now: Instant) -> Result<(), Exceeded> {
        self.check(now)?;
        if let Some(limit) = self.budget.turns.filter(|limit| self.turns >= *limit) {
            return Err(Exceeded::Turns(limit));
        }
        self.turns += 1;
        Ok(())
    }

    /// The agent tells how full its window is, and what the session has cost (MSG-05).
    ///
    /// # Errors
    /// When that is too much.
    pub fn usage(&mut self, update: &UsageUpdate) -> Result<(), Exceeded> {
        self.window = self.window.max(update.used);
        if let Some(cost) = &update.cost {
            self.cost = Some(cost.clone());
        }
        self.check_usage()
    }

    /// The answer to a prompt counts the tokens of the session so far (PROMPT-19).
    ///
    /// # Errors
    /// When that is too much.
    pub fn counted(&mut self, usage: &Usage) -> Result<(), Exceeded> {
        self.counted = self.counted.max(usage.total_tokens);
        self.check_usage()
    }

    /// Looks at all limits but the number of turns.
    ///
    /// # Errors
    /// When one of them is reached.
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

    /// The tokens used so far, as far as the agent tells.
    pub fn tokens(&self) -> u64 {
        self.counted.max(self.window)
    }

    /// What was spent so far, as far as the agent tells.
    pub fn cost(&self) -> Option<&Cost> {
        self.cost.as_ref()
    }

    /// How many turns have begun.
    pub fn turns(&self) -> u32 {
        self.turns
    }
}
