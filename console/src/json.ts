/** Parses JSON input. */

/** The parsed value, or the parser's error message. */
export function parsed(text: string): { value: unknown; fault: "" } | { value: null; fault: string } {
  try {
    return { value: JSON.parse(text), fault: "" };
  } catch (error) {
    return { value: null, fault: (error as Error).message };
  }
}
