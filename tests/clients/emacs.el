;;; emacs.el --- editors/emacs/nuncio.el in a batch Emacs -*- lexical-binding: t; -*-

;;; Commentary:

;; Loads the snippet with stand-ins for the functions of agent-shell that it calls, once for each
;; shape that `agent-shell-agent-configs' may have, and looks up nuncio as agent-shell does.
;; `emacs --batch -Q -l emacs.el'; it exits with 255 and the reason when something does not hold.

;;; Code:

(require 'seq)

(defvar agent-shell-agent-configs nil)

(defun agent-shell-make-agent-config (&rest arguments)
  "Return the alist of ARGUMENTS that names an agent."
  (list (cons :identifier (plist-get arguments :identifier))))

(provide 'agent-shell)

(defun test-configured ()
  "Return the agents, as `agent-shell--resolved-agent-configs' does."
  (mapcar (lambda (entry) (if (functionp entry) (funcall entry) entry))
          (if (functionp agent-shell-agent-configs)
              (funcall agent-shell-agent-configs)
            agent-shell-agent-configs)))

(defun test-other () "Return another agent." '((:identifier . other)))
(defun test-agents () "Return the agents of a user." (list #'test-other))

(let ((snippet (expand-file-name "../../editors/emacs/nuncio.el" (file-name-directory load-file-name))))
  (dolist (configs (list nil
                         '(((:identifier . other)))
                         (list #'test-other)
                         #'test-agents
                         (lambda () (list #'test-other))))
    (setq agent-shell-agent-configs configs)
    (load snippet nil t)
    (load snippet nil t)
    (let ((found (seq-count (lambda (config) (eq (alist-get :identifier config) 'nuncio))
                            (test-configured))))
      (unless (= found 1)
        (error "With %S, nuncio is offered %d times" configs found)))))

;; The rest of the command line is not for Emacs.
(kill-emacs 0)

;;; emacs.el ends here
