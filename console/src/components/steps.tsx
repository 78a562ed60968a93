/** The steps that a task's handler has completed; later attempts get the results instead of repeating the steps. */
import type { Step } from "../api/types";
import { Time, Took } from "./basics";
import { PayloadView } from "./payload_view";

export function Steps({ steps }: { steps: readonly Step[] }) {
  return (
    <section class="card wide">
      <h2>
        Steps <span class="muted">each done only once over all attempts</span>
      </h2>
      <table class="cards" aria-label="Steps">
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col" class="number">Attempt</th>
            <th scope="col">Ended</th>
            <th scope="col" class="number">Took</th>
            <th scope="col">Result</th>
          </tr>
        </thead>
        <tbody>
          {steps.map((step) => (
            <tr key={`${step.phase} ${step.name}`}>
              <td>
                {step.name} {step.phase !== "run" && <span class="muted">of {step.phase}</span>}
              </td>
              <td class="number" data-label="Attempt">{step.attempt}</td>
              <td data-label="Ended"><Time at={step.finished_at} /></td>
              <td class="number" data-label="Took"><Took ms={step.duration_ms} /></td>
              <td>
                <details>
                  <summary>Result</summary>
                  <PayloadView value={step.result} label={`Result of ${step.name}`} />
                </details>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
