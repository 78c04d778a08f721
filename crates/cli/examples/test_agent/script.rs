//! Reads scripts.

/// What to do when which method arrives.
pub(crate) struct Script {
    sections: Vec<Section>,
}

struct Section {
    method: String,
    /// Only this time, counted from 1.
    time: Option<usize>,
    acts: Vec<Act>,
}

/// One thing to do.
#[derive(Clone)]
pub(crate) struct Act {
    pub(crate) name: String,
    pub(crate) rest: String,
}

impl Script {
    pub(crate) fn read(text: &str) -> Script {
        let mut sections: Vec<Section> = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            if name == "on" {
                let (method, time) =
                    rest.split_once(' ').map_or((rest, None), |(method, time)| (method, time.parse().ok()));
                sections.push(Section { method: method.to_owned(), time, acts: Vec::new() });
            } else if let Some(section) = sections.last_mut() {
                section.acts.push(Act { name: name.to_owned(), rest: rest.to_owned() });
            } else {
                panic!("the script begins with `on METHOD`, not with `{line}`");
            }
        }
        Script { sections }
    }

    /// What to do when a method arrives for the nth time: what is said for just that time, else
    /// what is said for every time.
    pub(crate) fn section(&self, method: &str, time: usize) -> Option<Vec<Act>> {
        let of = |wanted: Option<usize>| {
            self.sections.iter().find(|section| section.method == method && section.time == wanted)
        };
        of(Some(time)).or_else(|| of(None)).map(|section| section.acts.clone())
    }
}
