// Anamnesis for OpenCode: turns its events into hooks of the program. Put this file into
// ~/.config/opencode/plugins. Notes reach the model as part of the system prompt.
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { join } from "node:path"

const program = join(homedir(), ".anamnesis", "bin", "anamnesis")
const TIMEOUT = 5000

// Runs a hook. Whatever fails, the session goes on.
function hook(cwd, session, event, fields) {
  const payload = { host: "opencode", hook_event_name: event, session_id: session, cwd, ...fields }
  return new Promise((resolve) => {
    let printed = ""
    const child = spawn(program, ["hook"], { cwd, stdio: ["pipe", "pipe", "ignore"], timeout: TIMEOUT })
    child.on("error", () => resolve({}))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (data) => (printed += data))
    child.on("close", () => {
      try {
        resolve(JSON.parse(printed).hookSpecificOutput ?? {})
      } catch {
        resolve({})
      }
    })
    child.stdin.end(JSON.stringify(payload))
  })
}

export const Anamnesis = async ({ directory }) => {
  // Of each session: what the model is told, and its last answer.
  const sessions = new Map()
  const run = (session, event, fields) => hook(directory, session, event, fields)
  const inject = (session, answer) => {
    if (answer.additionalContext) sessions.get(session)?.context.push(answer.additionalContext)
  }
  const begin = async (session) => {
    if (sessions.has(session)) return
    sessions.set(session, { context: [], answer: "", users: new Set() })
    inject(session, await run(session, "SessionStart", { source: "startup" }))
  }
  return {
    "chat.message": async ({ sessionID, messageID }, { message, parts }) => {
      await begin(sessionID)
      sessions.get(sessionID).users.add(message?.id ?? messageID)
      const prompt = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      inject(sessionID, await run(sessionID, "UserPromptSubmit", { prompt: prompt.join("\n") }))
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      output.system.push(...(sessions.get(sessionID)?.context ?? []))
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const call = { tool_name: tool, tool_input: args, tool_use_id: callID }
      const answer = await run(sessionID, "PreToolUse", call)
      if (answer.permissionDecision === "deny") throw new Error(answer.permissionDecisionReason)
      inject(sessionID, answer)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, { output, metadata }) => {
      const code = metadata?.exit
      const call = { tool_name: tool, tool_input: args, tool_use_id: callID }
      const ended = code ? { error: `Exit code ${code}\n${output}` } : { tool_response: output }
      inject(sessionID, await run(sessionID, code ? "PostToolUseFailure" : "PostToolUse", { ...call, ...ended }))
    },
    event: async ({ event: { type, properties } }) => {
      const session = properties?.sessionID ?? properties?.part?.sessionID ?? properties?.info?.id
      const known = sessions.get(session)
      if (!known) return
      const part = properties.part
      if (type === "message.part.updated" && part?.type === "text" && !known.users.has(part.messageID)) {
        known.answer = part.text
      } else if (type === "session.idle") {
        await run(session, "Stop", { last_assistant_message: known.answer })
      } else if (type === "session.deleted") {
        sessions.delete(session)
        await run(session, "SessionEnd", { reason: "deleted" })
      }
    },
  }
}
