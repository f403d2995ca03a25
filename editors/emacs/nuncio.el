;;; nuncio.el --- nuncio in agent-shell -*- lexical-binding: t; -*-

;;; Commentary:

;; For Emacs 29.1 or newer with agent-shell (on MELPA).  Put this file on your `load-path' and
;; `(require 'nuncio)' into your init file, after any setting of `agent-shell-agent-configs'.
;; `M-x nuncio' starts it; `M-x agent-shell' offers it among the others.

;;; Code:

(require 'agent-shell)

(defvar nuncio-command '("nuncio" "acp")
  "The program that speaks ACP, and its arguments.")

(defun nuncio-make-agent-config ()
  "Return nuncio's configuration for agent-shell."
  (agent-shell-make-agent-config
   :identifier 'nuncio
   :mode-line-name "nuncio"
   :buffer-name "nuncio"
   :shell-prompt "nuncio> "
   :shell-prompt-regexp "nuncio> "
   :client-maker (lambda (buffer)
                   (acp-make-client
                    :context-buffer buffer
                    :command (car nuncio-command)
                    :command-params (cdr nuncio-command)
                    :environment-variables (agent-shell-make-environment-variables :inherit-env t)))
   :install-instructions "Build nuncio with `cargo install --path .' and have it on your PATH."))

(defun nuncio-add-to-agents ()
  "Offer nuncio in `agent-shell-agent-configs', a list or a function that returns one."
  (if (functionp agent-shell-agent-configs)
      (add-function :filter-return (var agent-shell-agent-configs)
                    #'nuncio-append-agent-config '((name . nuncio)))
    (add-to-list 'agent-shell-agent-configs (nuncio-make-agent-config) t)))

(defun nuncio-append-agent-config (configs)
  "Return CONFIGS with nuncio's configuration at the end."
  (append configs (list (nuncio-make-agent-config))))

(nuncio-add-to-agents)

;;;###autoload
(defun nuncio ()
  "Start nuncio in a new shell."
  (interactive)
  (agent-shell-start :config (nuncio-make-agent-config)))

(provide 'nuncio)

;;; nuncio.el ends here
