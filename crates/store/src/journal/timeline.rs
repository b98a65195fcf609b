//! Events before and after a time, in all sessions of a project.

use anamnesis_session::observe::Observation;
use rusqlite::{Row, params_from_iter, types::Value};

use super::{Error, Journal};
use crate::sqlite::{Queries, bound, read_row};

/// The events of a timeline: session starts, prompts of a person and observations; in this order at
/// the same time.
const MOMENTS: &str = concat!(
    "
  SELECT started_at AS at, id AS session, project, 0 AS what, NULL AS text FROM session
  UNION ALL
  SELECT prompt.at, session.id, project, 1, text FROM prompt
    JOIN session ON session.id = prompt.session WHERE ",
    is_request!(),
    " AND text IS NOT NULL
  UNION ALL
  SELECT observation.at, session.id, project, 2, body FROM observation
    JOIN session ON session.id = observation.session"
);

/// The kind of a moment.
#[derive(Debug, Clone, PartialEq)]
pub enum MomentKind {
    /// A session began.
    Session,
    /// A person sent this prompt.
    Prompt(String),
    /// This observation was made.
    Observation(Box<Observation>),
}

/// An event in a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// The time, milliseconds since 1970.
    pub at: i64,
    /// The client's id of the session.
    pub session: String,
    /// The session's project.
    pub project: String,
    /// The event.
    pub event: MomentKind,
}

impl Journal {
    /// Returns the last moments up to a time and the first ones after it, in order; of the projects
    /// with these keys, or of all if there are none.
    pub fn around(
        &self,
        projects: &[String],
        at: i64,
        before: usize,
        after: usize,
    ) -> Result<Vec<Moment>, Error> {
        let mut moments = self.moments(projects, ("<=", "DESC"), at, before)?;
        moments.reverse();
        moments.extend(self.moments(projects, (">", "ASC"), at, after)?);
        Ok(moments)
    }

    fn moments(
        &self,
        projects: &[String],
        (comparison, order): (&str, &str),
        at: i64,
        limit: usize,
    ) -> Result<Vec<Moment>, Error> {
        let keys = vec!["?"; projects.len()].join(", ");
        let condition = if projects.is_empty() {
            String::new()
        } else {
            format!("AND project IN ({keys})")
        };
        let sql = format!(
            "SELECT * FROM ({MOMENTS}) WHERE at {comparison} ? {condition}
             ORDER BY at {order}, session {order}, what {order} LIMIT ?"
        );
        let mut values = vec![Value::Integer(at)];
        values.extend(projects.iter().cloned().map(Value::Text));
        values.push(bound(limit).into());
        let rows: Vec<Option<Moment>> = self.rows(&sql, params_from_iter(values), moment)?;
        // Another version may write observations in another format.
        Ok(rows.into_iter().flatten().collect())
    }
}

fn moment(row: &Row<'_>) -> rusqlite::Result<Option<Moment>> {
    let what: i64 = row.get("what")?;
    let text: Option<String> = row.get("text")?;
    let text = text.unwrap_or_default();
    let event = match what {
        0 => Some(MomentKind::Session),
        1 => Some(MomentKind::Prompt(text)),
        _ => serde_json::from_str(&text)
            .ok()
            .map(MomentKind::Observation),
    };
    event
        .map(|event| read_row!(row, Moment: at, session, project; event = event))
        .transpose()
}
